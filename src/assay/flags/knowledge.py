"""What one version of an engine takes, and from where that is known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from assay.errors import UsageError
from assay.flags import versions
from assay.flags.dialect import Dialect, dialects
from assay.flags.history import History, history
from assay.flags.spec import FlagSpec
from assay.records.doctor import Evidence

_NEAR = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """What a name on the command line means."""

    spec: FlagSpec | None
    negated: bool = False
    """Its `--no-` spelling."""
    abbreviated: bool = False
    key: str | None = None
    """Of `--flag.key`: the part after the dot."""
    candidates: tuple[str, ...] = ()
    """Flags that it is the beginning of, when there are several."""


@dataclass(frozen=True, kw_only=True)
class Knowledge:
    """The flags of one version."""

    dialect: Dialect
    version: str
    specs: tuple[FlagSpec, ...]
    past: History
    source: str
    """For people: where this is known from."""
    from_help: bool = False
    """Out of the installed engine's own help, not a recorded history."""

    @cached_property
    def _by_name(self) -> Mapping[str, FlagSpec]:
        return {name: spec for spec in self.specs for name in spec.names}

    @property
    def names(self) -> Iterable[str]:
        """Every spelling."""
        return self._by_name

    def find(self, name: str) -> FlagSpec | None:
        """The flag with exactly this spelling."""
        return self._by_name.get(name)

    def resolve(self, name: str) -> Resolved:
        """What the engine makes of a name: another spelling, a negation, a beginning, a part of a JSON value."""
        plain = _dashed(name) if self.dialect.underscores else name
        if spec := self._by_name.get(plain):
            return Resolved(spec=spec)
        if plain.startswith("--no-") and (spec := self._by_name.get("--" + plain[5:])) and spec.negatable:
            return Resolved(spec=spec, negated=True)
        if self.dialect.dotted and "." in plain:
            whole, _, key = plain.partition(".")
            long = self.dialect.shorthands.get(whole, whole)  # an older version may call it otherwise
            return Resolved(spec=self._by_name.get(long) or self._by_name.get(whole), key=key)
        for short, long in self.dialect.shorthands.items():
            spec = self._by_name.get(long) or self._by_name.get(short)
            if plain.startswith(short) and spec:
                return Resolved(spec=spec, key=plain[len(short) :] or None)
        return self._abbreviated(plain)

    def near(self, name: str) -> list[str]:
        """The spellings that come nearest, best first."""
        plain = _dashed(name)
        longs = [each for each in self._by_name if each.startswith("--")]
        close = difflib.get_close_matches(plain, longs, n=_NEAR, cutoff=0.72)
        begun = [each for each in longs if each.startswith((f"{plain}-", f"{plain}_"))]
        parts = set(plain.strip("-").split("-"))
        alike = [each for each in longs if len(parts) > 1 and parts <= set(each.strip("-").split("-"))]
        return list(dict.fromkeys([*close, *begun, *alike]))[:_NEAR]

    def evidence(self) -> Evidence:
        """Of what is said about this version's flags."""
        return Evidence(source=self.source, basis="help" if self.from_help else "history")

    def _abbreviated(self, name: str) -> Resolved:
        if not self.dialect.abbreviations or not name.startswith("--") or len(name) <= 2:  # noqa: PLR2004 - the dashes
            return Resolved(spec=None)
        fitting = {each: spec for spec in self.specs for each in spec.spellings if each.startswith(name)}
        if len({id(spec) for spec in fitting.values()}) == 1:
            spelling, spec = next(iter(fitting.items()))
            return Resolved(spec=spec, abbreviated=True, negated=spelling not in spec.names)
        return Resolved(spec=None, candidates=tuple(sorted(fitting)))


def from_history(engine: str, version: str | None = None) -> Knowledge:
    """What is recorded of a version; of the newest recorded one when none is named."""
    past = history(engine)
    wanted = version or past.newest
    stand = versions.standing_for(wanted, past.checked)
    source = f"{engine} {stand or past.checked[0]} {past.medium}: argument declarations"
    if stand and versions.release(stand) != versions.release(wanted):
        source = f"{source}; {wanted} itself was not read"
    return Knowledge(dialect=dialects()[engine], version=wanted, specs=tuple(past.at(wanted)), past=past, source=source)


def of_named_version(engine: str, named: str | None) -> Knowledge:
    """What is recorded of a version as a person writes it: `v0.5.9` too, and `b11549` of llama.cpp.

    Args:
        engine: whose.
        named: the version; None: the newest recorded one.

    Raises:
        UsageError: that is no version.
    """
    plain = named and named.removeprefix("b" if engine == "llamacpp" else "v")
    if plain is not None and not versions.is_version(plain):
        raise UsageError(f"--engine-version {named}: that is no version", hint="such as 0.5.9 or 0.33.0")
    return from_history(engine, plain)


def from_help(engine: str, version: str, specs: Sequence[FlagSpec], source: str) -> Knowledge:
    """What an installed engine says of itself, with what is recorded of the same flags and is not in a help.

    The help decides which flags exist, their choices and defaults. Whether one is dead or has a successor is taken from
    the history of that version, where it is recorded.
    """
    past = history(engine)
    recorded = {name: spec for spec in past.at(version) for name in spec.names}
    return Knowledge(
        dialect=dialects()[engine],
        version=version,
        specs=tuple(_with_record(spec, recorded) for spec in specs),
        past=past,
        source=source,
        from_help=True,
    )


def _with_record(spec: FlagSpec, recorded: Mapping[str, FlagSpec]) -> FlagSpec:
    known = next((recorded[name] for name in spec.names if name in recorded), None)
    if known is None:
        return spec
    kind = known.kind if spec.kind == "str" else spec.kind
    return replace(
        spec,
        kind=kind,
        many=spec.many or known.many,
        negatable=spec.negatable or known.negatable,
        deprecated=spec.deprecated or known.deprecated,
        new=spec.new or known.new,
        dead=known.dead,
        loose=known.loose,
        words=spec.words or known.words,
    )


def _dashed(name: str) -> str:
    head, dot, tail = name.partition(".")
    return head.replace("_", "-") + dot + tail
