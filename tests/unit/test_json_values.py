"""Values of keys in JSON flags are judged as pydantic judges them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from assay.flags.json_values import Takes

WRITTEN = ["1e5", "1.0e1", "1.", ".0", "8.0", "1_000", "1__0", "+5", " 12 ", "1.5", "x", "\uff11", 1e30, 8.0, 1.5, True]


@pytest.mark.parametrize("value", WRITTEN, ids=repr)
@pytest.mark.parametrize(("kind", "python"), [("int", int), ("float", float)])
def test_a_value_fits_a_number_where_pydantic_takes_it(kind: str, python: type, value: Any) -> None:
    is_taken = False
    with suppress(ValidationError):
        TypeAdapter(python).validate_python(value)
        is_taken = True

    assert (Takes(types=(kind,)).problem(value) is None) == is_taken
