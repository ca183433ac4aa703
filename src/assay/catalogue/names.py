"""Entries held against the names that expressions may use: what no target has is found before a plan is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from assay.catalogue.entry_file import EntryFile
from assay.catalogue.expressions import Expression, expressions_of
from assay.catalogue.verify import Problem
from assay.errors import UsageError
from assay.plan.dial_space import scope_of
from assay.plan.expression import ExpressionError, check, evaluate
from assay.plan.situation import Situation, facts_of
from assay.records.hypothesis import Optimization
from assay.records.machine import EngineBuild, Machine, ModelFacts
from assay.records.spec import CampaignSpec

ANY_MACHINE = Machine(
    cpu_model="any", physical_cores=4, logical_cores=8, usable_cores=4, isa=[], memory_bytes=2**34, numa_nodes=1,
    kernel="any", os="any", python="any", hypervisor=False,
)  # fmt: skip
"""Its values decide nothing here: expressions are evaluated to see whether they can be."""
ANY_MODEL = ModelFacts(path="any", sha256="", size_bytes=None, architecture="any", quantization="any")


def names(files: Sequence[EntryFile]) -> list[Problem]:
    """Expressions that name, call or compare what they cannot, whatever the target."""
    return [
        problem
        for file in files
        for engine, variants in file.engines.items()
        for one in variants
        for problem in _of(one, engine)
    ]


def _of(one: Optimization, engine: str) -> Iterator[Problem]:
    facts = _facts_anywhere(engine)
    for expression in expressions_of(one):
        if told := _objection(expression, facts):
            what = f"{expression.key}: {told}"
            yield Problem(severity="error", entry=one.id, engine=engine, versions=one.versions, what=what)


def _objection(expression: Expression, facts: Mapping[str, Any]) -> str | None:
    scope = facts if expression.knobs is None else scope_of(facts, dict.fromkeys(expression.knobs, 1))
    try:
        if expression.is_condition:
            check(expression.text, scope)
        else:
            evaluate(expression.text, scope)
    except UsageError as error:
        problem = error.problem if isinstance(error, ExpressionError) else error.message
        return f"{problem}; {error.hint}" if error.hint else problem
    return None


def _facts_anywhere(engine: str) -> dict[str, Any]:
    """Every name that expressions may use; the values are unknown, or those of no machine in particular."""
    spec = CampaignSpec()
    build = EngineBuild(engine=engine, argv=[engine], version="0", source="any", flags=[])
    return facts_of(Situation(spec=spec, machine=ANY_MACHINE, build=build, model=ANY_MODEL))
