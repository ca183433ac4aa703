"""The architecture holds, and ARCHITECTURE.md speaks of what is there."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from assay.cli import COMMANDS
from assay.records.event import EventKind
from assay.records.run import RunStatus
from assay.records.spec import CampaignSpec, Statistics
from assay.records.verdict import VerdictKind

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "assay"
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
NAMES = sorted(set(re.findall(r"`([^`\n]+)`", TEXT)))
WORDS = {
    *EventKind,
    *RunStatus,
    *VerdictKind,
    *CampaignSpec.model_fields,
    *Statistics.model_fields,
    *(f"assay {command}" for command in COMMANDS),
    "assay.toml",
    "assay.db",
    "subprocess",
    "create",
    "__main__",
}
"""Names of the language of campaigns, where they are not names of code."""


def resolves(name: str) -> bool:
    """Whether a dotted name can be imported, attributes included."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[length:]:
            if not hasattr(found, attribute):
                return False
            found = getattr(found, attribute)
        return True
    return False


@pytest.mark.parametrize("name", NAMES)
def test_every_name_in_the_architecture_exists(name: str) -> None:
    if name in WORDS:
        return
    if re.fullmatch(r"assay(\.\w+)+", name):
        assert resolves(name), name
    else:
        assert (ROOT / name).exists() or (PACKAGE / name).exists(), name


def test_a_name_that_does_not_exist_would_be_found() -> None:
    assert not resolves("assay.plan.next_step.guess")
    assert not resolves("assay.plan.oracle.ask")
    assert resolves("assay.ports.Engine.launch")


def test_every_package_is_named_in_the_architecture() -> None:
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    modules = {path.name for path in PACKAGE.glob("*.py")} - {"__init__.py", "__main__.py"}

    assert packages
    assert packages | modules <= set(NAMES)


def test_the_way_to_the_socket_is_the_one_described() -> None:
    """Each file named holds the line that leads to the next one; the last opens the connection."""
    section = TEXT.split("## From `__main__` to the socket")[1]
    files = re.findall(r"`(src/assay/[\w/]+\.py)`", section)
    links = [
        "from assay.cli import run_command",
        "api.bench(",
        "from assay.load.bench import",
        "from assay.load.fleet import Fleet",
        '"assay.load.worker"',
        "from assay.load.client import",
        "KernelConnection.open(",
    ]

    for file, link in zip(files, links, strict=True):
        assert link in (ROOT / file).read_text(encoding="utf-8"), (file, link)


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, cwd=ROOT, timeout=120, check=False)


def test_layers_point_down_arithmetic_does_no_io_and_adapters_do_not_know_each_other() -> None:
    code = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"

    checked = run("-c", code)

    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "3 kept, 0 broken" in checked.stdout


def test_importing_assay_costs_none_of_its_dependencies() -> None:
    heavy = ["pydantic", "sqlalchemy", "numpy", "scipy", "pyarrow", "rich", "click", "jinja2"]

    checked = run("-c", f"import sys, assay; print(sorted(set({heavy}) & set(sys.modules)))")

    assert (checked.returncode, checked.stdout.strip()) == (0, "[]"), checked.stderr


def test_every_public_name_of_the_package_can_be_had() -> None:
    assay = import_module("assay")

    assert all(hasattr(assay, name) for name in assay.__all__)
