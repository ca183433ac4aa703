"""Rules about flags together, and about flags on a machine: conditions with their sources, as data.

A file `rules_<engine>.toml` holds `[[rule]]` tables; `Rule` documents the keys. A condition is an expression of
`assay.plan.expression` over the facts of `assay.flags.facts`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pydantic import Field

from assay.flags import versions
from assay.flags.facts import Facts
from assay.flags.history import DATA
from assay.plan.expression import UNDECIDED, ExpressionError, Outcome, evaluate
from assay.plan.expression import check as decide
from assay.records.base import Frozen
from assay.records.doctor import Evidence, Finding, Kind, Severity, Undecided

_VERSION = re.compile(r"\b\d+\.\d+(?:\.\d+)*(?:\.post\d+)?")
_FACT = re.compile(r'\bflag\("([^"]{1,80})"\)')
"""The value of a flag, as conditions write it."""
_PLACE = re.compile(r"\{(\w+)\}")


class Rule(Frozen):
    """One thing that is known to go wrong, or to do nothing."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    kind: Kind
    severity: Severity
    flags: list[str] = Field(min_length=1)
    """The rule is looked at when the first one is given; those of the others that are given are named with it."""
    since: str | None = None
    """First checked version that it holds for."""
    until: str | None = None
    """Last checked one."""
    read: str | None = None
    """Newest wheel in which it was seen to hold, where no version ended it: a later one may have."""
    value: list[str] = Field(default_factory=list)
    """Only for these values of the first flag; empty: for any."""
    when: str = "true"
    """What else must hold."""
    values: dict[str, str] = Field(default_factory=dict)
    """Numbers for the texts, by name: expressions."""
    what: str
    """What happens; `{name}` stands for one of `values`."""
    otherwise: str = ""
    """The same without numbers, for when one of them is unknown."""
    do: str
    replacement: str | None = None
    source: list[str] = Field(min_length=1)
    """File and wheel, pull request or issue."""
    quiet: bool = False
    """Not told when it cannot be decided."""


@lru_cache(maxsize=8)
def rules(engine: str) -> tuple[Rule, ...]:
    """Every rule of an engine; none when there is no file."""
    path = DATA / f"rules_{engine}.toml"
    if not path.exists():
        return ()
    tables = tomllib.loads(path.read_text(encoding="utf-8")).get("rule", [])
    return tuple(Rule.model_validate(table) for table in tables)


def applied(engine: str, version: str, facts: Facts) -> tuple[list[Finding], list[Undecided]]:
    """What the rules say of these flags, and which could not be decided."""
    findings: list[Finding] = []
    undecided: list[Undecided] = []
    for rule in rules(engine):
        given = [written for name in rule.flags if (written := facts.written(name))]
        if not given or not facts.written(rule.flags[0]) or not versions.within(version, rule.since, rule.until):
            continue
        if rule.value and str(facts.value(rule.flags[0])) not in rule.value:
            continue
        outcome = _decided(rule.when, facts.names)
        if outcome.holds:
            findings.append(_finding(rule, version, given, facts.names))
        elif (
            outcome.reason.startswith(UNDECIDED) and not rule.quiet and not any(map(facts.fits_everything, rule.flags))
        ):
            reason = _FACT.sub(r"\1", outcome.reason.removeprefix(UNDECIDED))
            undecided.append(Undecided(rule=rule.id, flags=given, reason=reason))
    return findings, undecided


def _decided(condition: str, names: Mapping[str, Any]) -> Outcome:
    """Decide a condition; one that a value of the command does not fit (a text for a number, division by 0) is open."""
    try:
        return decide(condition, names)
    except ExpressionError:
        return Outcome(holds=False, reason=f"{UNDECIDED}the values that were given do not fit the question")


def _number_of(text: str, names: Mapping[str, Any]) -> Any:
    try:
        return evaluate(text, names)
    except ExpressionError:
        return None


def _finding(rule: Rule, version: str, given: list[str], names: Mapping[str, Any]) -> Finding:
    numbers = {name: _number_of(text, names) for name, text in rule.values.items()}
    oldest = None if rule.since else _oldest(rule)
    is_before = oldest is not None and not versions.within(version, oldest, None)
    is_after = rule.read is not None and not versions.within(version, None, rule.read)
    unread = f" (so in {rule.read}, the last one read)" if is_after else ""
    unread = f" (so in {oldest}, the first one read)" if is_before else unread
    return Finding(
        kind=rule.kind,
        severity="warning" if unread and rule.severity == "error" else rule.severity,
        flags=given,
        what=_filled(rule.what, numbers, rule.otherwise) + unread,
        evidence=[Evidence(source=_up_to(source, rule), basis="rule") for source in rule.source],
        remedy=_filled(rule.do, numbers, rule.do),
        replacement=rule.replacement,
        rule=rule.id,
    )


def _oldest(rule: Rule) -> str | None:
    """The oldest wheel that its sources name; None where they name none."""
    named = [version for source in rule.source if " wheel" in source for version in _VERSION.findall(_head(source))]
    return min(named, key=versions.key, default=None)


def _head(source: str) -> str:
    """The part that says which wheels, before the file: `sglang wheels 0.5.1..0.5.16, server_args.py: ...`."""
    return re.split(r":|\.py", source, maxsplit=1)[0]


def _up_to(source: str, rule: Rule) -> str:
    """The source, and where it names a wheel the first and the newest one in which the rule was seen to hold."""
    newest, oldest = rule.read or rule.until, rule.since if _oldest(rule) else None
    if " wheel" not in source:
        return source
    named = _VERSION.findall(_head(source))
    is_later = oldest is not None and all(versions.key(each) > versions.key(oldest) for each in named)
    since = f"since the {oldest} wheel" if is_later else ""
    until = f"up to the {newest} wheel" if newest is not None and newest not in source else ""
    return f"{source} (and so {' and '.join(filter(None, (since, until)))})" if since or until else source


def _filled(text: str, numbers: Mapping[str, Any], otherwise: str) -> str:
    if any(numbers.get(name) is None for name in _PLACE.findall(text)):
        return otherwise or _PLACE.sub("?", text)
    return _PLACE.sub(lambda found: _number(numbers[found.group(1)]), text)


def _number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}"  # noqa: PLR2004 - digits
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
