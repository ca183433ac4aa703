"""What the rules are decided on: the flags in force, the parallel layout, and what is known of model and machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.flags.knowledge import Knowledge
from assay.flags.spec import FlagSpec, Scalar
from assay.flags.values import in_force, is_open
from assay.records.doctor import GivenFlag, Launch

_NUMBERS = frozenset({"int", "float", "size"})
MODEL_FACTS = ("hidden", "layers", "num_experts", "is_moe", "is_mla", "kv_heads", "heads", "max_positions", "name")
BOX_FACTS = ("count", "name", "compute_capability", "nvlink", "memory_bytes", "vendor")


class Facts:
    """One launch command as the rules see it."""

    def __init__(
        self,
        launch: Launch,
        knowledge: Knowledge,
        model: Mapping[str, Any] | None = None,
        box: Mapping[str, Any] | None = None,
        cache_tokens: int | None = None,
    ) -> None:
        """Take the last of repeated flags, as the engines do.

        Args:
            launch: the command.
            knowledge: of the engine's version.
            model: `MODEL_FACTS` by name, None for one that is not known; None when no model is known.
            box: `BOX_FACTS` likewise.
            cache_tokens: that the KV cache holds, by calculation.
        """
        self._knowledge = knowledge
        self._launch = launch
        self._given: dict[str, tuple[GivenFlag, bool]] = {}
        for flag in launch.flags:
            found = knowledge.resolve(flag.name)
            if found.spec is not None and (found.key is None or found.spec.kind != "json"):
                inside = found.key is not None and not flag.values  # -O3
                valued = flag.model_copy(update={"values": [found.key]}) if inside else flag
                self._given[found.spec.name] = (valued, found.negated)
        self.names: Mapping[str, Any] = {
            "flag": self.value,
            "given": lambda name: self.written(name) is not None,
            "env": launch.environment.get,
            "tp": self._size(knowledge.dialect.tp),
            "pp": self._size(knowledge.dialect.pp),
            "dp": self._size(knowledge.dialect.dp),
            "version": knowledge.version,
            "model": None if model is None else {name: model.get(name) for name in MODEL_FACTS},
            "gpu": None if box is None else {name: box.get(name) for name in BOX_FACTS},
            "cache_tokens": cache_tokens,
        }

    def written(self, name: str) -> str | None:
        """A flag as it stands on the command line, under whatever spelling; None when it does not."""
        spec = self._spec(name)
        if spec is None:  # one that this version does not take is there all the same, and told as that
            return name if any(flag.name == name for flag in self._launch.flags) else None
        given = self._given.get(spec.name)
        return given[0].name if given else None

    def value(self, name: str) -> Scalar | None:
        """The value in force: what was given, else the default; None when neither is known, as of `$N`."""
        spec = self._spec(name)
        if spec is None:
            return None
        given = self._given.get(spec.name)
        if given is None:
            return spec.default if spec.default_known else None
        flag, negated = given
        if spec.is_switch:
            return not negated
        if not flag.values:
            return True if spec.optional else None
        value = in_force(spec, flag.values[0], self._knowledge.dialect.engine)
        return None if isinstance(value, str) and (is_open(value) or _is_no_number(spec, value)) else value

    def fits_everything(self, name: str) -> bool:
        """Whether something else fills in the value of a flag that was given: a shell, a template."""
        spec = self._spec(name)
        given = self._given.get(spec.name) if spec else None
        return given is not None and any(is_open(value) for value in given[0].values)

    def _spec(self, name: str) -> FlagSpec | None:
        return self._knowledge.find(name)

    def _size(self, names: list[str]) -> int | None:
        """Ranks of one kind of parallelism; 1 for an engine that has no flag for it."""
        known = [name for name in names if self._spec(name) is not None]
        if not known:
            return 1
        value = self.value(known[0])
        return value if isinstance(value, int) and not isinstance(value, bool) else None


def _is_no_number(spec: FlagSpec, value: str) -> bool:
    """Whether a text stands where the engine takes a number, and no word that it takes instead."""
    return spec.kind in _NUMBERS and not spec.choices and value.lower() not in (*spec.words, "none", "auto")
