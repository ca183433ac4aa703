"""Write a small mixture-of-experts model with random weights, for servers that read Hugging Face folders.

Run it with a Python that has torch, transformers and tokenizers (vLLM's own):

    /opt/vllm/bin/python benchmarks/tiny_moe.py FOLDER [--layers 4] [--experts 32] [--hidden 512]

Its answers mean nothing. Its arithmetic does: the same architecture (Qwen3-MoE) as large models, small enough for two
CPU cores. The seed is fixed, so the same arguments make the same weights; the tokenizer learns its words from docs/.
"""

# ruff: noqa: PLC0415 - --help answers without torch; it is loaded where it is used
from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

VOCABULARY = 4096
END = "<|im_end|>"
SPECIAL = ["<|endoftext|>", "<|im_start|>", END]
POSITIONS = 4096
TEXTS = Path(__file__).parent.parent / "docs"
"""What the tokenizer learns its words from."""


def tokenizer() -> Any:
    """A byte-level BPE: every text has tokens, and every token a text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bare = Tokenizer(models.BPE())
    bare.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bare.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=SPECIAL, initial_alphabet=alphabet)
    texts = [path.read_text(encoding="utf-8") for path in sorted(TEXTS.glob("*.md"))]
    bare.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=bare, eos_token=END, pad_token=SPECIAL[0], model_max_length=POSITIONS
    )


def model(layers: int, experts: int, hidden: int, vocabulary: int) -> Any:
    """Random weights of the shape."""
    import torch
    from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

    torch.manual_seed(0)
    config = Qwen3MoeConfig(
        vocab_size=vocabulary,
        hidden_size=hidden,
        intermediate_size=3 * hidden,
        moe_intermediate_size=hidden // 2,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 64,
        num_key_value_heads=hidden // 128,
        head_dim=64,
        num_experts=experts,
        num_experts_per_tok=min(8, experts),
        decoder_sparse_step=1,
        mlp_only_layers=[],
        norm_topk_prob=True,
        max_position_embeddings=POSITIONS,
        tie_word_embeddings=False,
        eos_token_id=SPECIAL.index(END),
        bos_token_id=None,
    )
    return Qwen3MoeForCausalLM(config).to(torch.bfloat16)


def main() -> None:
    """Write the folder and say what it holds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--experts", type=int, default=32)
    parser.add_argument("--hidden", type=int, default=512)
    asked = parser.parse_args()
    words = tokenizer()
    made = model(asked.layers, asked.experts, asked.hidden, max(len(words), VOCABULARY))
    made.save_pretrained(asked.folder)
    words.save_pretrained(asked.folder)
    print(f"{asked.folder}: {sum(each.numel() for each in made.parameters()) / 1e6:.0f} million parameters in bf16")


if __name__ == "__main__":
    main()
