"""Secrets inside of the JSON that a command holds, whole or broken: by the names of its keys, at every depth."""

from __future__ import annotations

import json
import re
from typing import Any

from assay.records.secret_names import is_secret_key

_CREDENTIALS = re.compile(r"(?i)(?:bearer|basic)\s+\S{6,}")
"""What no key needs to tell: as a value of its own it is no prose."""
_NAME = re.compile(r"""(?<![\w.-])([A-Za-z][\w.-]{0,80})(?:\\?['"])?\s{0,4}[:=]\s{0,4}""")
_VALUE = re.compile(r"""\\?"[^"]*"?|'[^']*'?|[{\[].*|[^\s,{}\[\]'"]+""", re.DOTALL)
"""Behind the name of a key in what is no JSON: a quote is missing, the shell took them, or they are pairs."""
_NOTHING = frozenset({"null", "true", "false", "None", "True", "False", '""', "''"})
_WITHIN = frozenset("{[:=")


def masked_inside(text: str, taken: set[str]) -> str:
    """A word of the command without the secrets in its JSON; these are added to `taken`."""
    from assay.store.redact import MASK

    if _WITHIN.isdisjoint(text):
        return text
    try:
        content = json.loads(text)
        clean = masked_values(content, taken)
    except RecursionError:
        _masked_pairs(text, taken)
        return MASK  # nobody can say what else it holds
    except ValueError:
        return _masked_pairs(text, taken)
    if clean == content:
        return _masked_pairs(text, taken)  # of a key that is there twice only the last was read
    return json.dumps(clean, ensure_ascii=False, separators=(",", ":"))


def names_secret(flag: str) -> bool:
    """Whether a flag with dots (`--config.token`) goes to a key of secrets, or into an object under one."""
    return is_secret_key(flag.removesuffix("+").partition(".")[2])


def masked_values(value: Any, taken: set[str], *, is_secret: bool = False) -> Any:
    """A JSON-like value without what its keys say is secret; that is added to `taken`."""
    from assay.store.redact import MASK

    if isinstance(value, dict):
        under = {key: is_secret or (isinstance(key, str) and is_secret_key(key)) for key in value}
        return {key: masked_values(item, taken, is_secret=under[key]) for key, item in value.items()}
    if isinstance(value, list):
        return [masked_values(item, taken, is_secret=is_secret) for item in value]
    if value is None or isinstance(value, bool) or value == "":
        return value
    if is_secret or (isinstance(value, str) and _CREDENTIALS.fullmatch(value)):
        taken.add(str(value))
        return MASK
    return masked_inside(value, taken) if isinstance(value, str) else value


def _masked_pairs(text: str, taken: set[str]) -> str:
    from assay.store.redact import MASK

    parts, kept = [], 0
    for found in _NAME.finditer(text):
        value = _VALUE.match(text, found.end()) if found.start() >= kept and is_secret_key(found[1]) else None
        if value and value[0] not in _NOTHING:
            parts += [text[kept : value.start()], MASK]
            kept = value.end()
            taken.add(value[0].strip("\\\"'"))
    return "".join([*parts, text[kept:]])
