"""Improvement documents: Markdown with YAML front matter, written once, edited by people, read back."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from assay.catalogue.about import About
from assay.catalogue.atomic import write_atomically
from assay.catalogue.front_matter import FrontMatter, dump, parse
from assay.catalogue.prose import prose, sections, with_verdict
from assay.errors import UsageError
from assay.plan.proof import proofs
from assay.records.hypothesis import Hypothesis, Optimization

FOLDER = "improvements"
NAME = re.compile(r"^(?:(\d+)-)?(.+)\.md$")
OF_THE_HYPOTHESIS = ("priority", "status", "blocked_reason", "approved", "waits_for")
KEYS = (
    "id", "title", "tier", *OF_THE_HYPOTHESIS, "predicted", "prior", "flags", "remove_flags", "env", "dial", "artifact",
    "numerics", "applies_when", "regime", "regime_when", "excludes", "requires", "verify", "expectation", "needs_work",
    "risks", "reported", "engine", "versions", "mechanism_id", "ceiling", "mechanism", "rationale", "risk",
)  # fmt: skip
"""What the front matter may hold, in the order in which it is written."""
DEFAULTS: dict[str, Any] = {
    "tier": 1,
    "engine": "llamacpp",
    "mechanism": "see the document",
    "numerics": "exact",
    "risk": "see the document",
}
"""What a document that a person drops in may leave out."""
UNPREDICTED = [-0.05, 0.05]


class FolderDocuments:
    """The folder `improvements/` of a campaign; implements `assay.ports.Documents`."""

    def __init__(self, campaign: Path) -> None:
        self._folder = campaign / FOLDER

    def write(self, hypotheses: Sequence[Hypothesis], about: Mapping[str, About] | None = None) -> None:
        """Write documents that do not exist yet; a hypothesis that a person's document already has is left to it.

        Args:
            hypotheses: what to write up.
            about: what else is known of each on this target, by id.

        Raises:
            UsageError: a document that is there already cannot be read.
            RecordError: the folder cannot be written.
        """
        taken = {hypothesis.id for hypothesis in self.read()}
        for hypothesis in hypotheses:
            path = self._folder.parent / hypothesis.document
            if hypothesis.id not in taken and not path.exists():
                write_atomically(path, dump(_front(hypothesis), prose(hypothesis, (about or {}).get(hypothesis.id))))

    def read(self) -> list[Hypothesis]:
        """Read every document, in the order of their numbers; those without one come last.

        Raises:
            UsageError: a document cannot be read, or two have the same id.
        """
        found: list[Hypothesis] = []
        seen: dict[str, str] = {}
        paths = sorted(self._folder.glob("*.md"), key=lambda path: (_number(path) or 10**9, path.name))
        for path in paths:
            following = max((hypothesis.number for hypothesis in found), default=0) + 1
            hypothesis = _read(path, _number(path) or following)
            if hypothesis.id in seen:
                raise UsageError(
                    f"{hypothesis.document} and {seen[hypothesis.id]} both have the id {hypothesis.id!r}",
                    hint="give one of them another id",
                )
            seen[hypothesis.id] = hypothesis.document
            found.append(hypothesis)
        return sorted(found, key=lambda hypothesis: (hypothesis.number, hypothesis.id))

    def fingerprints(self) -> dict[str, str]:
        """SHA-256 of every document, by its file name."""
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in self._folder.glob("*.md")}

    def withdraw(self, written: Mapping[str, str]) -> None:
        """Take the documents away that are still as they were written; what a person edited stays.

        Args:
            written: fingerprints as they were then.
        """
        for name, found in self.fingerprints().items():
            if written.get(name) == found:
                (self._folder / name).unlink()

    def note_verdict(self, hypothesis: Hypothesis, text: str) -> None:
        """Put the verdict between its markers, everything else untouched; a document that is gone stays gone.

        Raises:
            UsageError: the document is there and cannot be read.
            RecordError: it cannot be written.
        """
        path = self._folder.parent / hypothesis.document
        if not path.exists():
            return
        old = _text(path)
        new = with_verdict(old, text)
        if new != old:
            write_atomically(path, new)


def named(document: str) -> str:
    """The id that a document's file name says."""
    found = NAME.match(document)
    return found.group(2) if found else document.removesuffix(".md")


def _front(hypothesis: Hypothesis) -> dict[str, Any]:
    values = hypothesis.optimization.model_dump(mode="json", exclude={"mechanism", "rationale", "risk", "predicted"})
    values |= {key: getattr(hypothesis, key) for key in OF_THE_HYPOTHESIS}
    values |= {"predicted": list(hypothesis.predicted), "prior": list(hypothesis.optimization.predicted)}
    always = ("title", "flags", "applies_when")
    unsaid: tuple[Any, ...] = ([], {}, None, "")
    kept = {key: values[key] for key in KEYS if key in always or values.get(key) not in unsaid}
    return {key: value for key, value in kept.items() if key != "regime_when" or value != "true"}


def _number(path: Path) -> int | None:
    found = NAME.match(path.name)
    return int(found.group(1)) or None if found and found.group(1) else None


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{FOLDER}/{path.name} cannot be read: {error}", hint="restore it, or remove it") from error


def _read(path: Path, number: int) -> Hypothesis:
    place = f"{FOLDER}/{path.name}"
    front = parse(_text(path).replace("\r\n", "\n"), place)
    _refuse_bare_words(front, place)
    stem = named(path.name)
    values = {"predicted": UNPREDICTED, **front.values}
    _refuse_unordered(values, front, place)
    _refuse_unreadable_proof(values, front, place)
    own = {key: values.pop(key) for key in OF_THE_HYPOTHESIS if key in values}
    predicted = values["predicted"]
    values["predicted"] = values.pop("prior", predicted)
    try:
        optimization = Optimization.model_validate(
            {**DEFAULTS, "id": stem, "title": stem, **sections(front.body), **values}
        )
        return Hypothesis(number=number, optimization=optimization, predicted=predicted, document=place, **own)
    except ValidationError as error:
        raise _refused(error, front, place) from error


def _refuse_bare_words(front: FrontMatter, place: str) -> None:
    for path in front.bare:
        if path[0] in {"flags", "env"}:
            name = ".".join(str(part) for part in path)
            raise UsageError(
                f"{place}:{front.line(path)}: {name}: a bare on, off, yes or no means a text to some readers of YAML "
                "and true or false to others",
                hint=f"quote it where the engine wants the word ('{path[-1]}': 'off'); "
                "write true or false for a switch without a value",
            )


def _refuse_unordered(values: dict[str, Any], front: FrontMatter, place: str) -> None:
    for key in ("predicted", "prior"):
        match values.get(key):
            case [int() | float() as low, int() | float() as high] if not low <= high:
                raise UsageError(
                    f"{place}:{front.line([key])}: {key}: {low} is above {high}",
                    hint="write [low, high]: [-0.05, 0.1] is -5% to +10%",
                )


def _refuse_unreadable_proof(values: dict[str, Any], front: FrontMatter, place: str) -> None:
    verify = values.get("verify")
    try:
        proofs(verify) if isinstance(verify, str) else ()
    except ValueError as error:
        raise UsageError(
            f"{place}:{front.line(['verify'])}: verify: {error}",
            hint="for example `scheduler_config.max_num_seqs = 64`; leave it out where nothing proves it",
        ) from error


def _refused(error: ValidationError, front: FrontMatter, place: str) -> UsageError:
    first = error.errors()[0]
    path = [part for part in first["loc"] if not isinstance(part, str) or part not in {"bool", "int", "float", "str"}]
    name = ".".join(str(part) for part in path) or "the front matter"
    line = front.line(path)
    if first["type"] == "extra_forbidden":
        close = get_close_matches(str(path[-1]), KEYS, n=1)
        known = f"did you mean {close[0]}?" if close else f"the keys are {', '.join(KEYS)}"
        return UsageError(f"{place}:{line}: {name} is no key of a document", hint=known)
    told = f"{place}:{line}: {name}: {first['msg']} (found {first.get('input')!r})"
    return UsageError(told, hint=f"mend line {line} of the front matter; your text stays as it is")
