"""A model file's header tells what it is, and whether the file is whole."""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.engines.gguf_facts import read_facts
from assay.errors import UsageError

NUM_LAYERS = 3
DATA_BYTES = 18  # one block of Q4_0


def text(word: str) -> bytes:
    return struct.pack("<Q", len(word)) + word.encode()


def whole_file() -> bytes:
    """One Q4_0 tensor of 32 elements, and metadata of each sort."""
    pairs = [
        text("general.architecture") + struct.pack("<I", 8) + text("toy"),
        text("toy.block_count") + struct.pack("<II", 4, NUM_LAYERS),
        text("general.file_type") + struct.pack("<II", 4, 2),
        text("tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("b"),
        text("scores") + struct.pack("<IIQ", 9, 6, 2) + struct.pack("<ff", 1, 2),
    ]
    tensor = text("w") + struct.pack("<IQIQ", 1, 32, 2, 0)
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, len(pairs)) + b"".join(pairs) + tensor
    return head + bytes(-len(head) % 32) + bytes(DATA_BYTES)


def written(folder: Path, content: bytes) -> Path:
    path = folder / "toy.gguf"
    path.write_bytes(content)
    return path


@pytest.fixture(autouse=True)
def cache_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_the_header_is_read(tmp_path: Path) -> None:
    facts = read_facts(written(tmp_path, whole_file()))
    assert (facts.architecture, facts.quantization, facts.num_layers) == ("toy", "Q4_0", NUM_LAYERS)
    assert (facts.context_length, facts.name) == (None, "toy")


def test_a_file_whose_last_tensor_is_cut_is_refused_with_both_sizes(tmp_path: Path) -> None:
    content = whole_file()
    with pytest.raises(UsageError, match=f"need {len(content)} bytes, it has {len(content) - 1}"):
        read_facts(written(tmp_path, content[:-1]))


def test_a_file_cut_anywhere_is_refused(tmp_path: Path) -> None:
    content = whole_file()
    for length in range(len(content)):
        with pytest.raises(UsageError):
            read_facts(written(tmp_path, content[:length]))


@given(st.integers(4, len(whole_file()) - 1), st.binary(min_size=1, max_size=8))
def test_a_damaged_file_is_read_or_refused_but_never_breaks_the_reader(position: int, damage: bytes) -> None:
    content = bytearray(whole_file())
    content[position : position + len(damage)] = damage
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), bytes(content))
        try:
            assert read_facts(path).size_bytes == len(content)
        except UsageError as error:
            assert error.hint  # noqa: PT017 - either outcome is right
