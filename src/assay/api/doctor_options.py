"""The file of options that a launch command names (TensorRT-LLM's YAML), read where it is on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.flags.knowledge import Knowledge
    from assay.records.doctor import Finding, GivenFlag, Launch, Undecided

_TOO_DEEP = "is nested too deeply"


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionsFile:
    """What became of it."""

    content: Mapping[str, Any] | None = None
    """None: there is none, or it was not read."""
    findings: Sequence[Finding] = ()
    """That the engine cannot read it either."""
    unread: Sequence[Undecided] = ()
    """The flag that names it, where it was not read."""
    notes: Sequence[str] = ()
    """Why it was not read."""


def read_options(command: Launch, knowledge: Knowledge) -> OptionsFile:
    """Read the file; one that is here and holds no options keeps the engine from starting."""
    from assay.api.doctor_files import text_of
    from assay.flags.check import config_flag

    flag = config_flag(command, knowledge)
    if flag is None:
        return OptionsFile()
    file = text_of(flag.values[-1])
    if file.text is None:
        return _broken(flag, file.reason) if file.is_no_text else _unread(file.path, flag, file.reason)
    return _parsed(file.text, file.path, flag)


def _parsed(text: str, path: Path | str, flag: GivenFlag) -> OptionsFile:
    import yaml

    from assay.api.doctor_files import yaml_loader, yaml_problem

    try:
        content = yaml.load(text, yaml_loader())  # noqa: S506 - safe loaders both
    except RecursionError:
        return _unread(path, flag, _TOO_DEEP)
    except (yaml.YAMLError, ValueError) as error:  # 2024-13-40 is a ValueError
        if "nesting depth" in yaml_problem(error):
            return _unread(path, flag, _TOO_DEEP)
        return _broken(flag, f"is no YAML: {yaml_problem(error)}")
    if content is None:
        return OptionsFile(content={})
    if not isinstance(content, dict):
        return _broken(flag, f"holds a {type(content).__name__} and no options")
    return OptionsFile(content=content)


def _unread(path: Path | str, flag: GivenFlag, reason: str) -> OptionsFile:
    from assay.records.doctor import Undecided

    return OptionsFile(
        unread=[
            Undecided(rule="options", flags=[flag.name], reason="the file was not read, so nothing in it was checked")
        ],
        notes=[f"{path} ({flag.name}) {reason}: its entries were not checked"],
    )


def _broken(flag: GivenFlag, reason: str) -> OptionsFile:
    from assay.records.doctor import Evidence, Finding

    path = flag.values[-1]
    finding = Finding(
        kind="bad-value",
        severity="error",
        flags=[flag.name],
        what=f"names {path}, which {reason}",
        evidence=[Evidence(source=f"{path}, read here", basis="source")],
        remedy="make it a YAML file of `option: value` lines",
    )
    return OptionsFile(findings=[finding])
