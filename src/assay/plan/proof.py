"""An entry's own proof that it is in force (`verify`), held against what the server reports.

`path = value` asks for one key of the effective configuration. Several are parted by `;`, and each has to hold as far
as it is reported; several values are parted by `|`, and one of them is enough. A value may be

- a text or a number, in any case of letters; `*` stands for anything: `*trtllm*`;
- `--flag`: what the arm gives that flag (`16k` is 16000 where the engine reads it so; what leaves the choice to the
  engine, `auto`, asks for nothing); `$NAME`: what it gives that variable. With `*` before or behind it, what ends
  or begins so: `$NAME*`.

A path that the server does not report proves nothing, and refutes nothing. Of a log, silence may be what is asked for:
`log.decode_graph = none`.

>>> verify, asked = "kernel_config.moe_backend = --moe-backend", {"--moe-backend": "triton"}
>>> refuted(verify, asked, {}, {"kernel_config.moe_backend": "auto"})
'the server reports kernel_config.moe_backend = auto, not triton'
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assay.records import sizes
from assay.records.base import Flags
from assay.records.hypothesis import Hypothesis
from assay.records.run import RunStatus
from assay.records.state import CampaignState

SECTIONS = ("", "engine.")
"""Where a path is looked for: as it is, else in the configuration that vLLM's log tells."""
LOG = "log."
LEFT_TO_ENGINE = frozenset({"auto", "none", ""})
ABSENT = "none"
SERVED = frozenset({RunStatus.OK, RunStatus.INVALID, RunStatus.WRONG_OUTPUT})
"""How a run ends whose server was asked, and did not contradict what was changed."""
_PATH = re.compile(r"^[A-Za-z_][\w.\[\]-]*$")
_NAMED = re.compile(r"^(?P<before>\**)(?P<name>--[\w.-]+|\$\w+)(?P<behind>\**)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """One key, and the values that prove it."""

    path: str
    values: tuple[str, ...]


def proofs(text: str) -> list[Proof]:
    """The parts of a `verify`.

    Raises:
        ValueError: it is none; says what is wrong.
    """
    return [_proof(part) for part in text.split(";")] if text.strip() else []


def asked_of_the_arm(text: str) -> set[str]:
    """The flags (`--flag`) and variables (`$NAME`) whose values it takes.

    Raises:
        ValueError: it is none; says what is wrong.
    """
    named = (_NAMED.match(value) for proof in proofs(text) for value in proof.values)
    return {match["name"] for match in named if match}


def refuted(
    text: str, flags: Flags, env: Mapping[str, str], effective: Mapping[str, Any], *, engine: str = ""
) -> str | None:
    """What the server reports against it; None where it confirms it or tells nothing.

    Args:
        text: the proof.
        flags: of the arm.
        env: of the arm.
        effective: what the server reports.
        engine: by whose rules `16k` is read.
    """
    for proof in _readable(text):
        reported = _reported(proof.path, effective)
        wanted = _wanted(proof, flags, env)
        if reported is not None and wanted and not any(_is(_each(proof.path, reported), one, engine) for one in wanted):
            return f"the server reports {proof.path} = {_shown(reported)}, not {' or '.join(wanted)}"
    return None


def proved(text: str, flags: Flags, env: Mapping[str, str], effective: Mapping[str, Any]) -> str | None:
    """What the server reports for it, as `path = value`; None where it reports none of it."""
    told = [
        f"{proof.path} = {_shown(reported)}"
        for proof in _readable(text)
        if (reported := _reported(proof.path, effective)) is not None and _wanted(proof, flags, env)
    ]
    return "; ".join(told) or None


def unproved(hypothesis: Hypothesis, state: CampaignState) -> str | None:
    """What of its proof no server that ran with it ever reported, in a sentence; None where there is no such thing.

    Runs that never served, or that were stopped as not applied, tell nothing of it.
    """
    runs = [
        (run.intent.arm, run.outcome.effective)
        for run in state.runs
        if hypothesis.id in run.intent.arm.deltas and run.outcome is not None and run.outcome.status in SERVED
    ]
    env = state.spec.target.env
    read = _readable(hypothesis.optimization.verify)
    may_be_absent = {proof.path for proof in read if proof.path.startswith(LOG) and ABSENT in proof.values}
    asked = {
        proof.path: [_reported(proof.path, effective) for _, effective in runs]
        for proof in read
        if any(_wanted(proof, arm.flags, {**env, **arm.env}) for arm, _ in runs)
    }
    silent = [path for path, answers in asked.items() if all(answer is None for answer in answers)]
    never = [path for path in silent if path not in may_be_absent]
    if not never:
        return None
    told = f"the server does not report {' and '.join(f'`{path}`' for path in never)}"
    if len(silent) < len(asked):
        return f"A part of its proof is missing: {told}."
    return f"Whether it was in force could not be proved: {told}."


def _readable(text: str) -> list[Proof]:
    """An entry's proof was checked when it was read; what a person wrote into a document may be none."""
    try:
        return proofs(text)
    except ValueError:
        return []


def _proof(part: str) -> Proof:
    path, equals, values = (word.strip() for word in part.partition("="))
    wanted = tuple(value.strip() for value in values.split("|"))
    if not equals or not _PATH.match(path) or not all(wanted):
        raise ValueError(f"{part.strip()!r} is not `path = value`, or `path = value | value`")
    return Proof(path=path, values=wanted)


def _reported(path: str, effective: Mapping[str, Any]) -> Any:
    return next((effective[key] for section in SECTIONS if (key := section + path) in effective), None)


def _wanted(proof: Proof, flags: Flags, env: Mapping[str, str]) -> list[str]:
    """The values, with those of the arm in place of their names; what the arm does not give asks for nothing."""
    given = {**flags, **{f"${name}": value for name, value in env.items()}}
    found = []
    for value in proof.values:
        if not (match := _NAMED.match(value)):
            found.append(value)
        elif (asked := given.get(match["name"])) is not None and str(asked).lower() not in LEFT_TO_ENGINE:
            found.append(match["before"] + _shown(asked) + match["behind"])
    return found


def _each(path: str, reported: Any) -> list[str]:
    """What was reported as texts: a log may tell of several layers or models, a configuration's list is one value."""
    several = isinstance(reported, list) and path.startswith(LOG)
    return [_shown(one) for one in reported] if several else [_shown(reported)]


def _is(reported: list[str], wanted: str, engine: str) -> bool:
    pattern = re.compile(".*".join(re.escape(part) for part in wanted.split("*")), re.IGNORECASE)
    size = sizes.whole(wanted, engine)
    number = wanted if size is None else str(size)
    return any(pattern.fullmatch(text) or _same_number(text, number) for text in reported)


def _same_number(one: str, other: str) -> bool:
    try:
        return float(one) == float(other)
    except ValueError:
        return False


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
