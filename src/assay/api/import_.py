"""The verb that reads other tools' results: import_results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.records.imported import Format, ImportedResult


def import_results(files: Sequence[Path], kind: Format | None = None) -> list[ImportedResult]:
    """Every run in the files, in their order, each metric recomputed under our definitions where raw data allows.

    Args:
        files: results of vLLM bench, SGLang bench_serving, GuideLLM, AIPerf or llama-bench.
        kind: the format of all of them; None: told by the content of each.

    Raises:
        UsageError: a file cannot be read, is none of the formats, or a value in it has the wrong type.
    """
    from assay.formats.read import read_file

    return [result for file in files for result in read_file(file, kind)]
