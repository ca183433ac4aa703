"""A model folder is found and described; nothing is fetched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay.engines import folder_facts
from assay.engines.folder_facts import find_model, folder_sha256, read_facts
from assay.errors import UsageError

QWEN3 = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 64, "intermediate_size": 128,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 256,
    "max_position_embeddings": 512, "tie_word_embeddings": True, "torch_dtype": "bfloat16",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def model_in(folder: Path, config: object = QWEN3) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "weights.bin").write_bytes(b"weights")
    return folder


def test_a_folder_says_what_its_configuration_says(tmp_path: Path) -> None:
    facts = read_facts(model_in(tmp_path / "tiny"))
    assert (facts.architecture, facts.quantization, facts.name) == ("qwen3", "bf16", "tiny")
    assert (facts.num_layers, facts.context_length, facts.num_experts) == (2, 512, None)
    assert facts.size_bytes == sum(file.stat().st_size for file in Path(facts.path).iterdir())


def test_an_architecture_that_no_estimate_knows_can_be_measured_all_the_same(tmp_path: Path) -> None:
    config = {
        "architectures": ["NewForCausalLM"],
        "model_type": "brand_new",
        "num_hidden_layers": 3,
        "dtype": "float16",
    }
    facts = read_facts(model_in(tmp_path / "new", config))
    assert (facts.architecture, facts.quantization, facts.num_layers) == ("NewForCausalLM", "float16", 3)
    assert facts.context_length is None


def test_a_change_of_any_weight_changes_the_hash(tmp_path: Path) -> None:
    folder = model_in(tmp_path / "tiny")
    before = folder_sha256(folder)
    assert folder_sha256(folder) == before
    (folder / "weights.bin").write_bytes(b"weightz")
    assert folder_sha256(folder) != before


def test_of_a_large_file_pieces_are_hashed_its_end_among_them(tmp_path: Path) -> None:
    folder = model_in(tmp_path / "large")
    large = folder / "weights.bin"
    with large.open("wb") as sink:
        sink.truncate(folder_facts.WHOLE_BYTES + 10)  # sparse: nothing is written
    before = folder_sha256(folder)
    with large.open("r+b") as sink:
        sink.seek(-1, 2)
        sink.write(b"x")
    assert folder_sha256(folder) != before


def test_what_tools_left_hidden_is_no_part_of_the_model(tmp_path: Path) -> None:
    folder = model_in(tmp_path / "tiny")
    before = folder_sha256(folder)
    (folder / ".cache").mkdir()
    (folder / ".cache" / "download.lock").write_text("x")
    assert folder_sha256(folder) == before


def test_a_hub_name_is_looked_up_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "hub" / "models--some--model"
    snapshot = model_in(home / "snapshots" / "abc")
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text("abc\n")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    assert find_model("some/model") == snapshot


@pytest.mark.parametrize("name", ["no/such-model", "no-such-folder", "../../etc"])
def test_what_is_not_here_is_not_fetched(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as raised:
        find_model(name)
    assert raised.value.hint


def test_a_file_is_no_model_folder(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    with pytest.raises(UsageError, match="is no model folder"):
        find_model(str(tmp_path / "model.gguf"))
