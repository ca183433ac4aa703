"""The command that says what is installed: version."""

from __future__ import annotations

import platform
import re
from importlib.metadata import PackageNotFoundError, requires, version

import click

from assay import __version__
from assay.cli import options
from assay.cli.command import TeachingCommand
from assay.cli.output import show, show_json

OF_DEVELOPERS = re.compile(r"extra == ['\"]dev['\"]")


@click.command(
    "version",
    cls=TeachingCommand,
    needs="Nothing.",
    examples=["assay version", "assay version --json"],
    exits={0: "done"},
)
@options.as_json
def version_command(as_json: bool) -> None:
    """Print the versions of Assay, Python, the system and the packages that Assay stands on.

    A report of a defect needs this output. `assay assess` says more about the machine and the engine.
    """
    packages = installed()
    if as_json:
        python, system = platform.python_version(), platform.platform()
        show_json({"assay": __version__, "python": python, "platform": system, "packages": packages})
        return
    show(f"assay {__version__}", f"python {platform.python_version()} on {platform.platform()}")
    show(*(f"{name} {found or 'not installed'}" for name, found in packages.items()))


def installed() -> dict[str, str | None]:
    """Version of each package that the installed Assay declares, without the developers' tools; None: not there."""
    try:
        declared = requires("assay") or []
    except PackageNotFoundError:  # run from a source tree that was not installed
        return {}
    names = sorted(re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in declared if not OF_DEVELOPERS.search(line))
    return {name: _version_of(name) for name in names}


def _version_of(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
