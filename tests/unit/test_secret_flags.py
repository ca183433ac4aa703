"""Secrets in flags would reach the record, or the server as a mask: they are refused with what to do instead."""

from __future__ import annotations

import pytest

from assay.api.secret_flags import refuse_secret_flags, refuse_secrets_of
from assay.errors import UsageError
from assay.records.base import Flags
from assay.records.hypothesis import Optimization

SECRET = "hf_made0up0secret0value"  # noqa: S105 - made up


@pytest.mark.parametrize(
    ("flags", "hint"),
    [
        ({"--hf-token": SECRET}, "export HF_TOKEN=..."),
        ({"--api-key": "word"}, "need no API key"),
        ({"--threads": 2, "--ssl-keyfile-password": "word"}, "export the variable"),
    ],
)
def test_a_flag_with_a_secret_is_refused_with_the_variable_to_use(flags: Flags, hint: str) -> None:
    with pytest.raises(UsageError, match=r"target\.flags: --.* holds a secret") as caught:
        refuse_secret_flags(flags, "target.flags")

    assert hint in str(caught.value.hint)
    assert SECRET not in f"{caught.value.message}{caught.value.hint}"


def test_flags_that_only_speak_of_tokens_and_keys_pass() -> None:
    refuse_secret_flags({"--max-num-batched-tokens": 8192, "--cache-type-k": "q8_0", "--special-tokens": True}, "flags")


def test_a_variable_with_a_secret_in_an_entry_is_refused() -> None:
    fields = {"id": "x", "title": "t", "tier": 1, "numerics": "exact", "predicted": (0.0, 0.1), "mechanism": "m"}
    entry = Optimization.model_validate({**fields, "engine": "vllm", "env": {"HF_TOKEN": SECRET}})

    with pytest.raises(UsageError, match="x: env: HF_TOKEN holds a secret"):
        refuse_secrets_of([entry])
