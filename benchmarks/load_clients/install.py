"""One virtual environment for each peer, from package registries; and a tokenizer small enough to write by hand."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from clients import Client

PRINTABLE = "".join(map(chr, range(ord("!"), ord("~") + 1)))
SPACE, NEWLINE, END = "\u0120", "\u010a", "<|endoftext|>"
"""As byte-level tokenizers spell the two; and the one special token."""
VERSIONS = (
    "import json, sys; from importlib.metadata import distributions; "
    "print(json.dumps({d.metadata['Name'].lower(): d.version for d in distributions()}))"
)


@dataclass(frozen=True, slots=True)
class Installed:
    """What came of installing an environment."""

    reason: str | None
    """Why it cannot be used; None: it can."""
    seconds: float = 0.0
    versions: dict[str, str] = field(default_factory=dict)


class Peers:
    """The folder with everybody's environments."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def python(self, client: Client) -> Path:
        """The interpreter that runs a client."""
        return Path(sys.executable) if client.environment is None else self._bin(client.environment) / "python"

    def tokenizer(self) -> Path:
        """A byte-level tokenizer of printable ASCII, one token a character: exact both ways for every tool."""
        folder = self.folder / "tokenizer"
        if not (folder / "tokenizer.json").exists():
            _write_tokenizer(folder)
        return folder

    def state(self, client: Client) -> Installed:
        """Whether a client can run, and the versions it would run with."""
        if client.environment is None:
            return Installed(None, versions=_versions(Path(sys.executable)))
        note = self.folder / client.environment / "installed.json"
        if not note.exists():
            return Installed("not installed (--install)")
        found = Installed(**json.loads(note.read_text()))
        if found.reason is None and client.needs and not self._has(client):
            return Installed(f"the {client.environment} wheel carries no {client.needs}", versions=found.versions)
        return found

    def install(self, clients: Iterable[Client], *, limit_s: float, pip_options: list[str]) -> None:
        """Make the missing environments; one that failed before is made again."""
        self.tokenizer()
        recipes = {client.environment: client.packages for client in clients if client.environment}
        for name, packages in recipes.items():
            note = self.folder / name / "installed.json"
            if note.exists() and json.loads(note.read_text())["reason"] is None:
                continue
            print(f"installing {name} ...", file=sys.stderr, flush=True)
            outcome = self._make(name, packages, limit_s, pip_options)
            note.write_text(json.dumps(asdict(outcome), indent=1))
            print(f"  {outcome.reason or 'ready'} ({outcome.seconds:.0f} s)", file=sys.stderr, flush=True)

    def _make(
        self, name: str, packages: tuple[tuple[str, ...], ...], limit_s: float, pip_options: list[str]
    ) -> Installed:
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        began = time.monotonic()
        pip = [str(self._bin(name) / "python"), "-m", "pip", "install", "--disable-pip-version-check"]
        calls = [[sys.executable, "-m", "venv", str(folder / "venv")]]
        calls += [[*pip, *pip_options, *arguments] for arguments in packages]
        with (folder / "install.txt").open("w+b") as log:
            for call in calls:
                left_s = limit_s - (time.monotonic() - began)
                try:
                    subprocess.run(call, stdout=log, stderr=subprocess.STDOUT, timeout=max(left_s, 1), check=True)
                except subprocess.TimeoutExpired:
                    return Installed(f"pip took more than {limit_s:.0f} s", time.monotonic() - began)
                except subprocess.CalledProcessError:
                    return Installed(f"pip: {_complaint(folder / 'install.txt')}", time.monotonic() - began)
        return Installed(None, time.monotonic() - began, _versions(self._bin(name) / "python"))

    def _bin(self, name: str) -> Path:
        return self.folder / name / "venv" / "bin"

    def _has(self, client: Client) -> bool:
        assert client.environment is not None
        return any((self.folder / client.environment / "venv").glob(f"lib/python*/site-packages/{client.needs}"))


def _versions(python: Path) -> dict[str, str]:
    found = subprocess.run([str(python), "-c", VERSIONS], capture_output=True, text=True, check=True)
    versions: dict[str, str] = json.loads(found.stdout)
    return versions


def _complaint(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]
    return (errors or lines or ["no output"])[-1][:300]


def _write_tokenizer(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    special = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False) | {"special": True}
    vocabulary = {token: number for number, token in enumerate([END, *PRINTABLE, SPACE, NEWLINE])}
    model: dict[str, object] = {"type": "BPE", "vocab": vocabulary, "merges": [], "unk_token": None}
    described = {
        "version": "1.0",
        "added_tokens": [{"id": 0, "content": END, **special}],
        "pre_tokenizer": byte_level,
        "decoder": byte_level,
        "model": model,
    }
    loaded_as = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": END,
        "pad_token": END,
        "model_max_length": 1_000_000,
        "clean_up_tokenization_spaces": False,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(loaded_as))
    (folder / "tokenizer.json").write_text(json.dumps(described))
