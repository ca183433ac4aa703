"""Secrets out of everything that is written down: by name, by place in a command line, by shape.

Engines speak of tokens and keys all day (`output_tokens`, `--cache-type-k`, `eos_token`), so a name counts as
secret only as a whole word in an environment variable, or as a known last part of a field, header or flag.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from assay.records.secret_names import is_secret_field, snake_case

MASK = "[redacted]"

_ENV_NAME = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*")
_ENV_SECRET_WORDS = frozenset(
    {"TOKEN", "TOKENS", "KEY", "KEYS", "APIKEY", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL"}
    | {"CREDENTIALS", "PAT"}
)
_PLURALS = frozenset({"TOKENS", "KEYS"})
_FLAG_ONLY = frozenset({"token", "hft", "key"})
"""Too common as words to count anywhere but in a command line (`-hft` is llama.cpp's `--hf-token`)."""

# Every pattern starts at a literal or at the beginning of a word, and so stays linear on long texts (logs, templates).
_WHOLE_SECRETS = re.compile(
    r"(?<![A-Za-z0-9_-])(?:"
    r"hf_(?:[A-Za-z0-9]{20,}|(?=[A-Za-z]*[0-9])[A-Za-z0-9]{6,})"
    r"|sk-(?:[A-Za-z0-9_-]{20,}|(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{6,})"
    r"|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}|glpat-[A-Za-z0-9_-]{16,}"
    r"|AKIA[A-Z0-9]{16}|xox[abprs]-[A-Za-z0-9-]{10,})"
)
_AFTER = (
    re.compile(r"(?i)(\b(?:bearer|basic)\s+)(?:[A-Za-z0-9._~+/=-]{20,}|(?=[^\s0-9]*[0-9])[A-Za-z0-9._~+/=-]{6,})"),
    re.compile(r"((?<![a-z0-9+.-])[a-z][a-z0-9+.-]{0,20}://[^\s/:@]*:)[^\s/]+(?=@)"),
    re.compile(r"(https?://)[^\s/:@]+(?=@)"),
    re.compile(r"(?i)([?&](?:api_?key|(?:access_)?token|key|secret|password|signature|sig)=)[^&\s#\[]+"),
)
_ASSIGNED = re.compile(r"(?<![\w-])(-{0,2}[A-Za-z][\w-]*)(=)([^\s\[]+)")
_SPACED = re.compile(r"(?<![\w-])(--?[A-Za-z][\w-]*)(\s+)(?=\S*\d)([^\s\[-]\S*)")
"""A flag and its value within one text. Prose follows flags too ("--api-key sets ..."), hence the digit."""
_QUOTED = re.compile(
    r"""(['"])([A-Za-z][\w.-]{0,80})\1(\s{0,4}:\s{0,4}[\[({]{0,2}\s{0,4})(['"])([^'"\n]{1,400})(?=\4(?!\s{0,4}:))"""
)
"""A name and its value in a dictionary that was printed: `{'api_key': ['...']}`; a name within is no value."""
_HEADER = re.compile(r"(?<![\w-])([A-Za-z][A-Za-z-]{0,40})(:[ \t]{1,4})(?=\S*\d)([^\s\[{'\"]\S*)")
"""A header as it was printed: `X-Api-Key: ...`."""
_SIGNS = (
    *(
        "key",
        "token",
        "secret",
        "passw",
        "passphrase",
        "credential",
        "auth",
        "cookie",
        "bearer",
        "basic",
        "pat=",
        "sig",
    ),
    *("://", "hf_", "hft", "sk-", "akia", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat", "glpat-", "xox"),
)
_LEAST_SECRET = 6
"""Characters: a shorter value is masked where it stands by its name, and not sought elsewhere."""


def redact(value: Any) -> Any:
    """Mask the secrets in a JSON-like value; everything else stays equal. Masking twice is masking once."""
    if isinstance(value, dict):
        return {key: _redact_named(key, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_redact_elements(value))
    return _redact_text(value) if isinstance(value, str) else value


def is_worth_a_look(text: str) -> bool:
    """Whether a text has anything that a secret is told by; quick, for logs of a million lines."""
    lower = text.lower()
    return any(sign in lower for sign in _SIGNS)


def secret_values(value: Any) -> frozenset[str]:
    """What `redact` masks in a JSON-like value, where it is long enough to be told from other words."""
    return frozenset(each for each in _taken_out(value, redact(value)) if len(each) >= _LEAST_SECRET)


def _taken_out(raw: Any, masked: Any) -> Iterator[str]:
    if isinstance(raw, dict):
        for name, item in raw.items():
            yield from _taken_out(item, masked[name])
    elif isinstance(raw, list | tuple):
        for ours, theirs in zip(raw, masked, strict=True):
            yield from _taken_out(ours, theirs)
    elif raw != masked and isinstance(raw, str):
        around = "(.*?)".join(re.escape(part) for part in masked.split(MASK))
        if found := re.fullmatch(around, raw, re.DOTALL):
            yield from found.groups()
    elif raw != masked:
        yield str(raw)


def is_secret_name(name: str) -> bool:
    """Whether what goes by this name (variable, field, header or flag) has to stay out of the record."""
    if _ENV_NAME.fullmatch(name):
        return not _ENV_SECRET_WORDS.isdisjoint(name.split("_"))
    last = name.rsplit(".", maxsplit=1)[-1]
    return is_secret_field(last) or (name.startswith("-") and snake_case(last) in _FLAG_ONLY)


def _redact_named(name: Any, value: Any) -> Any:
    if not isinstance(name, str) or not is_secret_name(name):
        return redact(value)
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return value if value == "" or _is_count(name, value) else MASK
    if isinstance(value, list | tuple):
        return type(value)(_redact_named(name, item) for item in value)
    return redact(value)


def _redact_elements(values: list[Any] | tuple[Any, ...]) -> list[Any]:
    """Mask list elements, minding that an element can be the value of the flag before it.

    A list of flag names (`["-hft", "--hf-token"]`) has only flags after flags, and stays.
    """
    masked = []
    previous: Any = None
    for value in values:
        is_value = isinstance(previous, str) and previous.startswith("-") and isinstance(value, str)
        if is_value and value and not value.startswith("-") and is_secret_name(previous):
            masked.append(MASK)
        else:
            masked.append(redact(value))
        previous = value
    return masked


def _redact_text(text: str) -> str:
    for pattern in _AFTER:
        text = pattern.sub(rf"\g<1>{MASK}", text)
    for pattern in (_ASSIGNED, _SPACED):
        text = pattern.sub(_masked_if_secret, text)
    text = _QUOTED.sub(_masked_in_quotes, text)
    text = _HEADER.sub(_masked_header, text)
    return _WHOLE_SECRETS.sub(MASK, text)


def _masked_if_secret(match: re.Match[str]) -> str:
    name, between, value = match.groups()
    return f"{name}{between}{MASK}" if is_secret_name(name) and not _is_count(name, value) else match[0]


def _masked_in_quotes(match: re.Match[str]) -> str:
    quote, name, between, opened, value = match.groups()
    if not is_secret_name(name) or value == MASK or _is_count(name, value):
        return match[0]
    return f"{quote}{name}{quote}{between}{opened}{MASK}"


def _masked_header(match: re.Match[str]) -> str:
    """Names in capitals are no headers: `EOS TOKEN: 2` counts."""
    name, between, value = match.groups()
    if name.isupper() or not is_secret_name(name) or value.startswith(MASK):
        return match[0]
    return f"{name}{between}{MASK}"


def _is_count(name: str, value: Any) -> bool:
    """`MAX_TOKENS=4096` counts tokens, it does not hold any."""
    words = _ENV_SECRET_WORDS.intersection(name.split("_"))
    return bool(words) and words <= _PLURALS and str(value).strip(",;.)").replace(".", "", 1).isdigit()
