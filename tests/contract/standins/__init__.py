"""Programs that stand in for what is not installed where the tests run: docker, ssh, srun, and engines.

They are programs: started by Assay as the real ones are, with real processes behind them. `put` writes them into a
folder for PATH.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

from assay.flags import history

HERE = Path(__file__).parent


def put(name: str, folder: Path, source: str | None = None) -> Path:
    """`name` as an executable in `folder`, run by the Python of the tests."""
    text = (HERE / f"{source or name}.py").read_text(encoding="utf-8")
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{text}", encoding="utf-8")
    path.chmod(0o755)
    return path


def recorded(record: Path) -> list[list[str]]:
    """The command lines that stand-ins were started with, in order."""
    return [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()] if record.exists() else []


def environment(root: Path, version: str = "0.5.9") -> Path:
    """A folder like that of a virtual environment: bin/python sees a package `sglang`, the stand-in, of a version."""
    packages, programs = root / "packages", root / "bin"
    (packages / "sglang").mkdir(parents=True)
    programs.mkdir()
    (packages / "sglang" / "__init__.py").write_text("", encoding="utf-8")
    (packages / "sglang" / "launch_server.py").write_text((HERE / "sglang.py").read_text("utf-8"), encoding="utf-8")
    flags = [dataclasses.asdict(spec) for spec in history("sglang").at(version)]
    (packages / "sglang" / "flags.json").write_text(json.dumps(flags), encoding="utf-8")
    _metadata(packages, "sglang", version)
    _pythons(programs, packages)
    return root


def trtllm_environment(root: Path, version: str = "1.2.0") -> Path:
    """The same with `trtllm-serve`, the stand-in, and a `tokenizers` whose tokens are bytes."""
    packages, programs = root / "packages", root / "bin"
    (packages / "tokenizers").mkdir(parents=True)
    programs.mkdir()
    (packages / "tokenizers" / "__init__.py").write_text(TOKENIZERS, encoding="utf-8")
    flags = [dataclasses.asdict(spec) for spec in history("trtllm").at(version)]
    (programs / "flags.json").write_text(json.dumps(flags), encoding="utf-8")
    put("trtllm-serve", programs, "trtllm")
    _metadata(packages, "tensorrt_llm", version)
    _pythons(programs, packages)
    return root


TOKENIZERS = """
class Tokenizer:
    @staticmethod
    def from_file(path):
        open(path).close()
        return Tokenizer()
    def encode(self, text, add_special_tokens):
        self.ids = list(text.encode())
        return self
"""


def _metadata(packages: Path, name: str, version: str) -> None:
    about = packages / f"{name}-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")


def _pythons(programs: Path, packages: Path) -> None:
    for name in ("python", "python3"):
        path = programs / name
        path.write_text(
            f"#!{sys.executable}\nimport os, sys\nos.environ['PYTHONPATH'] = {str(packages)!r}\n"
            f"os.execv({sys.executable!r}, [{sys.executable!r}, *sys.argv[1:]])\n",
            encoding="utf-8",
        )
        path.chmod(0o755)
