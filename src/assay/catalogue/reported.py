"""Paths of proofs (`verify`) held against what the adapter of an engine is known to report.

A path that no server reports proves nothing in any campaign, so a misspelt one would never be noticed there. Facts of
the log are a closed list of each adapter's. Keys of the configuration are those of recorded answers, and the fields of
every recorded flag: versions differ, so one that is in neither is a warning. `data/flags/ENGINE_reported.txt` holds the
keys. Their sources: vLLM 0.26 and SGLang 0.5.17 on an H200, vLLM 0.32 on a CPU, llama.cpp's `/props` and `/slots` (the
campaigns in `examples/`), the state of SGLang's scheduler by its source; of TensorRT-LLM what its adapter and entries
name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import Literal

from assay.catalogue.entry_file import EntryFile
from assay.catalogue.verify import Problem
from assay.flags.history import DATA, history
from assay.plan.proof import LOG, proofs
from assay.records.hypothesis import Optimization

BEFORE_FIELDS = ("args.", "cache_info.", "engine.")
"""What stands before a flag's field where vLLM's log or metrics tell of it in place of `/server_info`."""
FIELDS = frozenset({"sglang", "vllm"})
"""Engines whose configuration names the fields of their flags."""


def reported(files: Sequence[EntryFile], log_facts: Mapping[str, frozenset[str]]) -> list[Problem]:
    """Proofs that nothing can prove: empty ones, and paths that nobody reports.

    Args:
        files: the entries.
        log_facts: by engine, what its adapter reads out of a log (`log.moe_backend`); engines that are not in it, such
            as those of other packages, are not looked at.
    """
    return [
        problem
        for file in files
        for engine, variants in file.engines.items()
        if engine in log_facts
        for one in variants
        for problem in _of(one, engine, log_facts[engine])
    ]


def _of(one: Optimization, engine: str, log_facts: frozenset[str]) -> Iterator[Problem]:
    if "verify" in one.model_fields_set and not one.verify.strip():
        yield _problem(one, "error", "verify is empty: give `path = value`, or leave it out where nothing proves it")
    asked = () if one.needs_work else proofs(one.verify)  # what is not launched yet needs no proof
    for path in dict.fromkeys(proof.path for proof in asked):
        if path.startswith(LOG) and path not in log_facts:
            yield _problem(one, "error", f"verify: no log of it is read for {path}{_meant(path, log_facts)}")
        elif not path.startswith(LOG) and (keys := _keys(engine)) and not _is_known(path, keys, _fields(engine)):
            what = f"verify: no recorded answer of the server holds {path}{_meant(path, keys)}"
            yield _problem(one, "warning", what)


def _problem(one: Optimization, severity: Literal["error", "warning"], what: str) -> Problem:
    return Problem(severity=severity, entry=one.id, engine=one.engine, versions=one.versions, what=what)


def _is_known(path: str, keys: frozenset[str], fields: frozenset[str]) -> bool:
    """Whether an answer holds it, or it is a flag's field, inside of a section that answers have.

    A field that holds a record (`cuda_graph_config.decode.backend`) is known with all that is in it.
    """
    section, dot, rest = path.partition(".")
    sections = {key.partition(".")[0] for key in keys if "." in key}
    if path in keys or section in fields:
        return True
    inside = rest if path.startswith(BEFORE_FIELDS) or (dot and section in sections) else ""
    return bool(inside) and not fields.isdisjoint((inside.rpartition(".")[2], inside.partition(".")[0]))


def _meant(path: str, known: frozenset[str]) -> str:
    near = get_close_matches(path, known, n=1, cutoff=0.75)
    return f"; did you mean {near[0]}?" if near else ""


@lru_cache(maxsize=8)
def _keys(engine: str) -> frozenset[str]:
    """Keys of recorded answers; empty where nothing is recorded."""
    path = DATA / f"{engine}_reported.txt"
    return frozenset(path.read_text(encoding="utf-8").split()) if path.exists() else frozenset()


@lru_cache(maxsize=8)
def _fields(engine: str) -> frozenset[str]:
    """What every recorded version's flags are called in the engine's own source."""
    if engine not in FIELDS:
        return frozenset()
    specs = (span.spec for spans in history(engine).spans.values() for span in spans)
    return frozenset(name.lstrip("-").replace("-", "_") for spec in specs for name in spec.names)
