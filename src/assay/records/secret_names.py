"""Which names stand for secrets: the one list, for what is stored, for what is shown, and for findings.

>>> is_secret_key("my-secret-key"), is_secret_key("clientSecret"), is_secret_key("method")
(True, True, False)
"""

from __future__ import annotations

import re

_FIELD = re.compile(
    r"(?:^|_)(?:api_?key[a-z]{0,3}|(?:secret|private|access|account|signing)_?key|secret|passw(?:or)?d|passphrase|credentials?"
    r"|(?:hf|hub|huggingface|github|gitlab|wandb|api|auth|access|bearer|refresh|session)_?token"
    r"|authorization|cookie)$"
)
_KEY = re.compile(r"(?:^|_)(?:keys?|token)$")
_OF_TEXT = re.compile(r"(?:^|_)(?:bos|eo[smt]|pad|unk|sep|cls|mask|image|video|audio|special|stop|start|end)_token$")
"""Tokens of a vocabulary, which everybody may read: `tokenizer.ggml.add_bos_token`."""


def is_secret_field(name: str) -> bool:
    """Whether a name ends in words that stand for nothing else, so that its value has to stay out of the record."""
    return bool(_FIELD.search(snake_case(name)))


def is_secret_key(name: str) -> bool:
    """Whether a key of an object in a command's JSON may hold a secret, which is then not shown.

    Wider than `is_secret_field`: a record has to keep a `cache_key`, and a screen loses little without one. Of a name
    with dots any part counts.
    """
    return any(is_secret_field(part) or _is_key(snake_case(part)) for part in name.split("."))


def snake_case(name: str) -> str:
    """`--apiKey` and `api-key` as `api_key`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.lstrip("-")).replace("-", "_").lower()


def _is_key(part: str) -> bool:
    return bool(_KEY.search(part)) and not _OF_TEXT.search(part)
