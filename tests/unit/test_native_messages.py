"""What is found in C and C++ sources: the message of each call, in the line that the engine would write."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.native_messages import logged, raised

SOURCE = r"""
void pond(int n) {
    GGML_ASSERT(n % 4 == 0 && "four otters a pond");
    GGML_ASSERT(n);
    if (n > 9) { GGML_ABORT("no room for %d otters in %s", n, name()); }
    if (n < 0) { throw std::runtime_error(format("pond '%s' has "
                                                 "no otters", name())); }
    LLAMA_LOG_ERROR("%s: pond %zu is dry\n", __func__, n);
    LLAMA_LOG_INFO("%s: pond is full, disabling badgers\n", __func__);
    TLLM_CHECK_WITH_INFO(n < 7, "at most %d otters", 7);
    TLLM_LOG_WARNING("pond (%d) is deep", n);
}
"""


@pytest.fixture(name="tree")
def written(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "pond.cpp").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "pond.cpp").write_text('GGML_ABORT("of a test");', encoding="utf-8")
    return tmp_path


def test_each_call_that_raises_gives_the_line_that_the_engine_would_write(tree: Path) -> None:
    lines = [line for _, (line,) in raised(tree)]

    assert lines == [
        '/src/src/pond.cpp:7: GGML_ASSERT(n % 4 == 0 && "four otters a pond") failed',
        "/src/src/pond.cpp:7: no room for 7 otters in otter",
        "llama_model_load: error loading model: pond 'otter' has no otters",
        "otter: pond 7 is dry",
        "[TensorRT-LLM][ERROR] Assertion failed: at most 7 otters (/src/src/pond.cpp:7)",
    ]


def test_what_is_only_told_is_kept_apart(tree: Path) -> None:
    assert [line for _, (line,) in logged(tree)] == [
        "otter: pond is full, disabling badgers",
        "[TensorRT-LLM][WARNING] pond (7) is deep",
    ]
