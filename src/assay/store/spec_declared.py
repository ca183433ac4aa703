"""What assay.toml leaves out, once a campaign exists: its record says what was declared, not today's defaults.

>>> from assay.records.spec import Budget, CampaignSpec
>>> filled({"budget": {"max_brackets": 8}}, CampaignSpec(budget=Budget(max_brackets=8, block=2)))["budget"]["block"]
2
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from assay.records.spec import CampaignSpec
from assay.store.redact import redact


def filled(data: dict[str, Any], declared: BaseModel) -> dict[str, Any]:
    """Data of a file, with what it does not say taken from the record.

    A default that another Assay changed thus changes no question that was asked before. What is absent by default
    (flags, constraints, `max_loss`) is not filled: leaving it out says that there is none.

    Args:
        data: a table of the file, not changed.
        declared: what the record says of it.
    """
    found = dict(data)
    for name, field in type(declared).model_fields.items():
        value = getattr(declared, name)
        if name in data:
            found[name] = _inside(data[name], value)
        elif isinstance(default := field.get_default(call_default_factory=True), BaseModel):
            found[name] = filled({}, value)
        elif default not in (None, {}, []):
            found[name] = declared.model_dump(mode="json", include={name})[name]
    return found


def _inside(given: Any, declared: Any) -> Any:
    """The same for a table, and for each table of a list that has as many as the record."""
    if isinstance(given, dict) and isinstance(declared, BaseModel):
        return filled(given, declared)
    if isinstance(given, list) and isinstance(declared, list) and len(given) == len(declared):
        return [_inside(one, other) for one, other in zip(given, declared, strict=True)]
    return given


def differences(now: CampaignSpec, declared: CampaignSpec) -> list[str]:
    """What a file says otherwise than the record: `budget.max_brackets = 7 (recorded: 6)`; secrets are masked."""
    return list(_differ("", redact(now.model_dump(mode="json")), redact(declared.model_dump(mode="json"))))


def _differ(key: str, now: Any, then: Any) -> Iterator[str]:
    if isinstance(now, dict) and isinstance(then, dict):
        for name in dict.fromkeys([*now, *then]):
            yield from _differ(f"{key}.{name}".lstrip("."), now.get(name), then.get(name))
    elif now != then:
        yield f"{key} = {_word(now)} (recorded: {_word(then)})"


def _word(value: Any) -> str:
    return "nothing" if value is None else json.dumps(value)
