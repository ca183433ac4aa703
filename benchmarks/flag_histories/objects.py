"""Keys of the objects that flags take as JSON, read from a version's source, with the history that keeps them.

vLLM's are fields of its configuration's classes (`assay.flags.object_source`, which the doctor itself uses on an
installed one). SGLang's stand in three places of its own, below.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from benchmarks.flag_histories.constants import UNKNOWN, Source, annotated, parsed, statements

from assay.flags import object_source
from assay.flags.object_source import Rows

GRAPHS, LIMITS, SAMPLING = "cuda_graph_config", "limit_mm_data_per_request", "preferred_sampling_params"
GRAPHS_FILE, SAMPLING_FILE = "model_executor/cuda_graph_config.py", "sampling/sampling_params.py"
REFUSED = {"extra": "refused"}


def keys_of(engine: str, root: Path) -> Rows:
    """What the flags of the package in a folder take."""
    if engine == "vllm":
        return object_source.of_package(root)
    runtime = root / "srt"
    rows = {**_graphs(runtime / GRAPHS_FILE), **_limits(runtime), **_sampling(runtime / SAMPLING_FILE)}
    handling = [runtime / "server_args.py", *(runtime / "arg_groups").rglob("*.py")]
    texts = [path.read_text(encoding="utf-8") for path in handling if path.exists()]
    missing = [name for name in (GRAPHS, LIMITS, SAMPLING) if not any(name in text for text in texts)]
    return {
        name: row for name, row in rows.items() if not name.lstrip("-").replace("-", "_").startswith(tuple(missing))
    }


def _flag(name: str) -> Rows:
    return {f"--{name.replace('_', '-')}": {"class": name}, name: dict(REFUSED)}


def _graphs(path: Path) -> Rows:
    """`ALLOWED_KEYS_PER_PHASE`: phases, each with its keys; `ALLOWED_BACKENDS_PER_PHASE`: what its backend may be."""
    if not path.exists():
        return {}
    source = Source()
    source.load([path])
    rows = _flag(GRAPHS)
    backends = _by_phase(source, "ALLOWED_BACKENDS_PER_PHASE")
    for name, keys in _by_phase(source, "ALLOWED_KEYS_PER_PHASE").items():
        of = f"{GRAPHS}_{name}"
        rows |= {f"{GRAPHS}.{name}": {"class": of, "types": ["object"]}, of: dict(REFUSED)}
        rows |= {f"{of}.{key}": {} for key in keys}
        if "backend" in keys and name in backends:
            rows[f"{of}.backend"] = {"choices": backends[name]}
    return rows


def _by_phase(source: Source, name: str) -> dict[str, list[str]]:
    """A table of the source by phase; empty where its text does not tell it."""
    table = source.constants.get(name)
    rows = zip(table.keys, table.values, strict=True) if isinstance(table, ast.Dict) else ()
    read = [(UNKNOWN if phase is None else source.value(phase), source.value(values)) for phase, values in rows]
    told = [(phase, values) for phase, values in read if isinstance(phase, str) and isinstance(values, list | tuple)]
    return {phase: list(values) for phase, values in told} if len(told) == len(read) else {}


def _limits(runtime: Path) -> Rows:
    """`allowed_modalities`, a set within the check of the arguments."""
    for path in [runtime / "server_args.py", *sorted((runtime / "arg_groups").glob("*.py"))]:
        if path.exists() and "allowed_modalities" in path.read_text(encoding="utf-8"):
            for node in ast.walk(parsed(path) or ast.Module([], [])):
                match node:
                    case ast.Assign(targets=[ast.Name(id="allowed_modalities")], value=ast.Set(elts=names)):
                        keys = [each.value for each in names if isinstance(each, ast.Constant)]
                        return {**_flag(LIMITS), **{f"{LIMITS}.{key!s}": {} for key in keys}}
    return {}


def _sampling(path: Path) -> Rows:
    """What `SamplingParams` takes: each request's object is made with these keys, and fails on another."""
    tree = parsed(path) if path.exists() else None
    for node in statements(tree.body if tree else []):
        if isinstance(node, ast.ClassDef) and node.name == "SamplingParams":
            return {**_flag(SAMPLING), **{f"{SAMPLING}.{key}": {} for key in _parameters(node)}}
    return {}


def _parameters(node: ast.ClassDef) -> Iterator[str]:
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and each.name == "__init__":
            yield from (one.arg for one in [*each.args.args[1:], *each.args.kwonlyargs])
            return
    yield from (each.target.id for each in annotated(node) if isinstance(each.target, ast.Name))
