"""Write a mixture-of-experts model of GLM-5's shape with seeded random weights, as a folder that engines read.

    python benchmarks/gpu/moe_model.py FOLDER --tokenizer FOLDER_WITH_TOKENIZER [--layers 6] [--intermediate 256] \
        [--heads 48] [--workers 1]

Hidden 6,144, 256 experts, 8 of them a token. One rank of TP8 holds 256 of the 2,048 columns of every expert, which is
the default: a step of this model on one GPU multiplies what a rank of GLM-5 multiplies, communication aside. Its
attention is grouped-query and small (GLM-5's needs kernels that not every build has). The weights are normal with
standard deviation 0.02, drawn per layer from the seed: equal arguments make equal files where the same kind of device
and version of PyTorch draws them (a CPU and a GPU draw differently), however many processes write them. Its answers
mean nothing.
"""

# ruff: noqa: PLC0415 - --help answers without torch; it is loaded where it is used
from __future__ import annotations

import argparse
import json
import multiprocessing
import shutil
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


HIDDEN, EXPERTS, SLOTS, HEADS, KV_HEADS, HEAD = 6144, 256, 8, 48, 8, 128
DEVIATION = 0.02
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "generation_config.json")


def config(layers: int, intermediate: int, vocabulary: int, heads: int = HEADS) -> dict[str, object]:
    """Its config.json: Qwen3-MoE's architecture at GLM-5's sizes."""
    return {
        "architectures": ["Qwen3MoeForCausalLM"],
        "model_type": "qwen3_moe",
        "hidden_size": HIDDEN,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD,
        "num_experts": EXPERTS,
        "num_experts_per_tok": SLOTS,
        "moe_intermediate_size": intermediate,
        "intermediate_size": 4 * intermediate,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "norm_topk_prob": True,
        "vocab_size": vocabulary,
        "max_position_embeddings": 32768,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1000000.0,
        "hidden_act": "silu",
        "attention_bias": False,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "bos_token_id": 0,
        "eos_token_id": 0,
    }


def drawn(generator: torch.Generator, *shape: int) -> torch.Tensor:
    """Normal weights in bf16."""
    import torch

    place = generator.device
    return (torch.randn(shape, generator=generator, device=place, dtype=torch.bfloat16) * DEVIATION).cpu()


def layer(number: int, seed: int, intermediate: int, heads: int = HEADS) -> dict[str, torch.Tensor]:
    """One layer's tensors, under the names that Hugging Face gives them."""
    import torch

    generator = torch.Generator(_place(number)).manual_seed(seed * 1000 + number)
    name = f"model.layers.{number}"
    found = {
        f"{name}.self_attn.q_proj.weight": drawn(generator, heads * HEAD, HIDDEN),
        f"{name}.self_attn.k_proj.weight": drawn(generator, KV_HEADS * HEAD, HIDDEN),
        f"{name}.self_attn.v_proj.weight": drawn(generator, KV_HEADS * HEAD, HIDDEN),
        f"{name}.self_attn.o_proj.weight": drawn(generator, HIDDEN, heads * HEAD),
        f"{name}.self_attn.q_norm.weight": torch.ones(HEAD, dtype=torch.bfloat16),
        f"{name}.self_attn.k_norm.weight": torch.ones(HEAD, dtype=torch.bfloat16),
        f"{name}.input_layernorm.weight": torch.ones(HIDDEN, dtype=torch.bfloat16),
        f"{name}.post_attention_layernorm.weight": torch.ones(HIDDEN, dtype=torch.bfloat16),
        f"{name}.mlp.gate.weight": drawn(generator, EXPERTS, HIDDEN),
    }
    for part, shape in (
        ("gate_proj", (intermediate, HIDDEN)),
        ("up_proj", (intermediate, HIDDEN)),
        ("down_proj", (HIDDEN, intermediate)),
    ):
        whole = drawn(generator, EXPERTS, *shape)
        found |= {f"{name}.mlp.experts.{one}.{part}.weight": whole[one].clone() for one in range(EXPERTS)}
    return found


def write(
    folder: Path, tokenizer: Path, layers: int, intermediate: int, seed: int, *, heads: int = HEADS, workers: int = 1
) -> int:
    """The folder; returns its bytes of weights. Each of the `workers` holds a layer three times while it writes it."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in TOKENIZER_FILES:
        if (tokenizer / file).exists():
            shutil.copy(tokenizer / file, folder / file)
    words = json.loads((tokenizer / "config.json").read_text())["vocab_size"]
    (folder / "config.json").write_text(json.dumps(config(layers, intermediate, words, heads), indent=1))
    part = partial(
        write_part, folder=folder, words=words, layers=layers, intermediate=intermediate, seed=seed, heads=heads
    )
    if workers == 1:
        sizes = [part(number) for number in range(layers + 1)]
    else:
        with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:  # a forked one has no CUDA
            sizes = list(pool.map(part, range(layers + 1)))
    where = {name: file for file, names, _ in sizes for name in names}
    total = sum(size for _, _, size in sizes)
    index = {"metadata": {"total_size": total}, "weight_map": where}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return total


def write_part(
    number: int, *, folder: Path, words: int, layers: int, intermediate: int, seed: int, heads: int
) -> tuple[str, list[str], int]:
    """One file: 0 is what stands at the ends, then the layers; returns its name, its tensors' and their bytes."""
    from safetensors.torch import save_file

    tensors = ends(words, seed) if number == 0 else layer(number - 1, seed, intermediate, heads)
    name = f"model-{number:05d}-of-{layers:05d}.safetensors"
    save_file(tensors, folder / name, metadata={"format": "pt"})
    return name, list(tensors), sum(one.nbytes for one in tensors.values())


def ends(words: int, seed: int) -> dict[str, torch.Tensor]:
    """Embedding, head and the last norm."""
    import torch

    generator = torch.Generator(_place(0)).manual_seed(seed)
    return {
        "model.embed_tokens.weight": drawn(generator, words, HIDDEN),
        "lm_head.weight": drawn(generator, words, HIDDEN),
        "model.norm.weight": torch.ones(HIDDEN, dtype=torch.bfloat16),
    }


def _place(number: int) -> str:
    """Where a part is drawn: GPUs take turns."""
    import torch

    return f"cuda:{number % torch.cuda.device_count()}" if torch.cuda.is_available() else "cpu"


def main() -> None:
    """Write it and say how large it is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tokenizer", type=Path, required=True, help="a model folder whose tokenizer is used")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--intermediate", type=int, default=256, help="columns of each expert (GLM-5: 2048, TP8: 256)")
    parser.add_argument("--heads", type=int, default=HEADS, help="of attention (%(default)s)")
    parser.add_argument("--workers", type=int, default=1, help="processes that write layers (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    size = write(
        asked.folder, asked.tokenizer, asked.layers, asked.intermediate, asked.seed,
        heads=asked.heads, workers=asked.workers,
    )  # fmt: skip
    print(f"{asked.folder}: {size / 1e9:.1f} GB of weights in bf16")


if __name__ == "__main__":
    main()
