"""One text for one value: the JSON that is hashed and stored."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from assay.errors import RecordError
from assay.records.spec import CampaignSpec
from assay.store.redact import redact


def canonical_json(value: Any) -> str:
    """Write a value as JSON with sorted keys, no spaces and ASCII only.

    Raises:
        RecordError: the value is not JSON, or reading the text would give another value back.
    """
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise RecordError(
            f"this cannot be recorded as JSON: {error}",
            hint="record None with a reason in place of NaN or infinity, and `model_dump(mode='json')` of a record",
        ) from error
    difference = _difference("payload", value, json.loads(text))
    if difference:
        raise RecordError(
            f"a JSON round trip would change {difference}",
            hint="pass lists for tuples and strings for dictionary keys: `model_dump(mode='json')` does both",
        )
    return text


def spec_hash(spec: CampaignSpec) -> str:
    """Hash a spec, secrets masked: the same before and after it went through the record.

    A changed token is therefore not a changed campaign, and `assay verify` can recompute the hash.
    """
    return recorded_spec_hash(spec.model_dump(mode="json"))


def recorded_spec_hash(spec: dict[str, Any]) -> str:
    """Hash a spec as it was recorded: a later Assay, whose specs have more fields, must find the same."""
    return hashlib.sha256(canonical_json(redact(spec)).encode()).hexdigest()


def _difference(path: str, before: Any, after: Any) -> str | None:
    if isinstance(before, dict):
        if set(before) != set(after):
            return f"the keys of {path}: {sorted(map(repr, before))}"
        return next((found for key in before if (found := _difference(f"{path}.{key}", before[key], after[key]))), None)
    if isinstance(before, list):
        pairs = enumerate(zip(before, after, strict=True))
        return next((found for i, (old, new) in pairs if (found := _difference(f"{path}[{i}]", old, new))), None)
    return None if before == after else f"{path}: {before!r} ({type(before).__name__}) would come back as {after!r}"
