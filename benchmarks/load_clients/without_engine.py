"""Run the benchmark client of vLLM or SGLang without their engines.

    python without_engine.py vllm|sglang|sglang-rust [the tool's own options]

Their load clients are ordinary asyncio programs inside packages that otherwise want a GPU stack of several gigabytes.
The client's own modules are imported as they are; every other module of the package, and PyTorch, is replaced by an
empty one whose attributes are empty classes. What the client does while it measures is therefore its own code.
"""

from __future__ import annotations

import importlib
import importlib.util
import runpy
import sys
from collections.abc import MutableSequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

REAL = {
    "vllm": (
        "vllm.benchmarks",
        "vllm.utils.argparse_utils",
        "vllm.utils.gc_utils",
        "vllm.utils.import_utils",
        "vllm.utils.network_utils",
    ),
    "sglang": (
        "sglang.bench_serving",
        "sglang.benchmark",
        "sglang.srt.rust_extensions",
        "sglang.srt.utils.network",
    ),
}
"""The client's own modules, by package; packages above them are entered without running their `__init__`."""
ABSENT = ("torch", "triton", "datasets", "zmq")
"""Wanted by parts that are not used here; empty unless installed."""


class _Empty(type):
    """The class of empty classes: whatever is asked of one is another, and none is true."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _empty(name)

    def __bool__(cls) -> bool:
        return False


def _empty(name: str) -> Any:
    def ignore(*_: Any, **__: Any) -> Any:
        return _empty(name)()

    def nothing(*_: Any) -> bool:
        return False

    def init(*_: Any, **__: Any) -> None:
        return None

    def attribute(_: Any, attr: str) -> Any:
        if attr.startswith("__"):
            raise AttributeError(attr)
        return _empty(attr)()

    def item(cls: Any, _: Any) -> Any:
        return cls

    members: dict[str, Any] = {"__init__": init, "__call__": ignore, "__getattr__": attribute, "__bool__": nothing}
    members["__class_getitem__"] = classmethod(item)
    return _Empty(name, (), members)


class EmptyModule(ModuleType):
    """A module that has whatever is imported from it."""

    __path__: MutableSequence[str] = []  # noqa: RUF012 - as ModuleType has it; nobody changes it

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = _empty(name)
        setattr(self, name, value)
        return value


class EmptyLoader(Loader):
    """Makes such modules."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return EmptyModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run."""


class WithoutEngine(MetaPathFinder):
    """Finds an empty module for every part of the package that is not the client's."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._real = REAL[package]
        self._absent = [name for name in ABSENT if importlib.util.find_spec(name) is None]

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002
        top = name.partition(".")[0]
        if top in self._absent or (top == self._package and not self._is_real(name)):
            return ModuleSpec(name, EmptyLoader(), is_package=True)
        return None

    def _is_real(self, name: str) -> bool:
        return any(name == real or name.startswith(real + ".") for real in self._real)


def enter(package: str) -> None:
    """Put the packages above the client's modules in place without running them, and the finder before all others."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"{package} is not installed here")
    (root, *_) = spec.submodule_search_locations
    sys.meta_path.insert(0, WithoutEngine(package))
    for real in REAL[package]:
        parts = real.split(".")
        for depth in range(1, len(parts)):
            name = ".".join(parts[:depth])
            module = EmptyModule(name)
            module.__path__ = ["/".join([root, *parts[1:depth]])]
            module.__spec__ = ModuleSpec(name, EmptyLoader(), is_package=True)
            module.__spec__.submodule_search_locations = list(module.__path__)
            sys.modules.setdefault(name, module)


def tokenizer(name: str, *_: Any, **__: Any) -> Any:
    """What the engines' `get_tokenizer` comes to for a folder in the Hugging Face format."""
    from transformers import AutoTokenizer  # noqa: PLC0415 - the Rust client wants none

    return AutoTokenizer.from_pretrained(name)


def vllm(options: list[str]) -> None:
    enter("vllm")
    importlib.import_module("vllm.tokenizers").get_tokenizer = tokenizer  # type: ignore[attr-defined]
    serve = importlib.import_module("vllm.benchmarks.serve")
    parser = importlib.import_module("vllm.utils.argparse_utils").FlexibleArgumentParser()
    serve.add_cli_args(parser)
    serve.main(parser.parse_args(options))


def sglang(options: list[str]) -> None:
    enter("sglang")
    sys.argv = ["sglang.benchmark.serving", *options]
    runpy.run_module("sglang.benchmark.serving", run_name="__main__", alter_sys=True)


def sglang_rust(options: list[str]) -> None:
    enter("sglang")
    client = importlib.import_module("sglang.benchmark.rust_client")
    raise SystemExit(client.main(["", *options], importlib.import_module(client.EXTENSION_MODULE)))


MAINS = {"vllm": vllm, "sglang": sglang, "sglang-rust": sglang_rust}

if __name__ == "__main__":
    MAINS[sys.argv[1]](sys.argv[2:])
