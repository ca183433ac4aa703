"""What the doctor shows, without the secrets of the command and of the file that it names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.records.doctor import DoctorReport, Launch

_OURS = frozenset({"engine", "kind", "severity", "basis"})
"""Fields of a report whose words are ours, whatever somebody took for a password."""
_LEAST_SECRET = 6
"""Characters: a shorter one is masked where it stands by its name, and not sought elsewhere."""
_MASK_AFTER = frozenset({"--api-key", "--admin-api-key", "--hf-token", "--ssl-keyfile-password"})


def masked(report: DoctorReport, command: Launch, content: Mapping[str, Any] | None) -> DoctorReport:
    """The report without secrets that findings quote of the command and the file, and without control codes."""
    from functools import cache

    from assay.records.doctor import DoctorReport
    from assay.records.text import shown
    from assay.store.redact import is_worth_a_look, redact, secret_values

    words = [word for flag in command.flags for word in (flag.name, *flag.values)]
    inside = _inside(command, content)
    secrets = Secrets({*inside, *secret_values([words, dict(command.environment), _entries_once(content)])})

    @cache  # a file of many entries repeats most texts
    def clean(text: str) -> str:
        plain = secrets.masked(text)
        return shown(str(redact(plain)) if is_worth_a_look(plain) else plain)

    def said(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: item if key in _OURS else said(item) for key, item in value.items()}
        if isinstance(value, list):
            return [said(item) for item in value]
        return clean(value) if isinstance(value, str) else value

    return DoctorReport.model_validate(said(report.model_dump(mode="json")))


def _inside(command: Launch, content: Mapping[str, Any] | None) -> set[str]:
    """The secrets in the JSON of a command and in its file, where they are long enough to be told from other words."""
    from assay.api.doctor_inside import masked_inside, masked_values, names_secret

    taken: set[str] = set()
    for word in (*(word for flag in command.flags for word in flag.values), *command.environment.values()):
        masked_inside(word, taken)
    for flag in command.flags:
        taken.update(flag.values if names_secret(flag.name) else ())
    masked_values(_entries_once(content), taken)
    return {each for each in taken if len(each) >= _LEAST_SECRET}


class Secrets:
    """Texts to mask wherever they stand; a file may hold tens of thousands of them.

    >>> Secrets(["hunter22", "er22-more"]).masked("pw hunter22-more, hunter2")
    'pw [redacted], hunter2'
    """

    def __init__(self, texts: Iterable[str]) -> None:
        """Sort them by length; empty ones are none."""
        self._texts = frozenset(text for text in texts if text)
        self._lengths = sorted({len(text) for text in self._texts}, reverse=True)
        self._starts = frozenset(text[: self._lengths[-1]] for text in self._texts)

    def masked(self, text: str) -> str:
        """The text with a mask for each stretch that secrets cover."""
        from assay.store.redact import MASK

        if not self._texts:
            return text
        shortest, parts, kept = self._lengths[-1], [], 0  # what is before `kept` is in `parts`, or masked
        for at in range(len(text) - shortest + 1):
            if text[at : at + shortest] not in self._starts:
                continue
            length = next((each for each in self._lengths if text[at : at + each] in self._texts), 0)
            if length and at >= kept:
                parts += [text[kept:at], MASK]
            kept = max(kept, at + length if length else 0)
        return "".join([*parts, text[kept:]])


def without_secrets(command: Launch) -> Launch:
    """The command without its secrets."""
    from assay.api.doctor_inside import masked_inside, names_secret
    from assay.records.doctor import GivenFlag
    from assay.store.redact import MASK, is_secret_name, redact

    def plain(words: Iterable[str]) -> list[str]:
        return list(redact([masked_inside(word, set()) for word in words]))

    def values(flag: GivenFlag) -> list[str]:
        is_secret = is_secret_name(flag.name.removesuffix("+")) or flag.name.replace("_", "-") in _MASK_AFTER
        return [MASK] * len(flag.values) if is_secret or names_secret(flag.name) else plain(flag.values)

    return command.model_copy(
        update={
            "flags": [GivenFlag(name=flag.name, values=values(flag), joined=flag.joined) for flag in command.flags],
            "environment": redact({name: masked_inside(item, set()) for name, item in command.environment.items()}),
            "wrapper": plain(command.wrapper),
            "positionals": plain(command.positionals),
        }
    )


def _entries_once(content: Any) -> list[Any]:
    """Every mapping's own entries, each mapping once: aliases of YAML repeat one without end."""
    found: list[Any] = []
    left, seen = [content], set[int]()
    while left:
        one = left.pop()
        if id(one) in seen or not isinstance(one, dict | list):
            continue
        seen.add(id(one))
        inside = list(one.values()) if isinstance(one, dict) else one
        left += [each for each in inside if isinstance(each, dict | list)]
        if isinstance(one, dict):
            found.append({key: _plain(item) for key, item in one.items()})
        else:
            found += _plain(one)
    return found


def _plain(item: Any) -> Any:
    """A value without what is nested in it."""
    if isinstance(item, list):
        return [each for each in item if not isinstance(each, dict | list)]
    return None if isinstance(item, dict) else item
