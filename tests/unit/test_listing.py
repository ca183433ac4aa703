"""One rule says which of a server's models is measured, for load tests and for campaigns alike."""

from __future__ import annotations

import pytest

from assay.errors import UsageError
from assay.records.listing import chosen, entries, note

URL = "http://127.0.0.1:1"
NAMES = [{"id": "a", "root": "/m"}, {"id": "b", "root": "/m"}, {"id": "adapter", "parent": "a", "root": "/lora"}]
TWO = [{"id": "a"}, {"id": "b"}]


def test_further_names_and_adapters_of_one_model_are_no_second_model() -> None:
    taken = chosen(NAMES, URL, None)

    assert taken["id"] == "a"
    assert note(NAMES, taken) == (
        "no model was named: a was taken; b, adapter are other names or adapters of it on this server"
    )
    assert note(NAMES[:1], taken) is None


def test_of_two_models_one_has_to_be_named() -> None:
    with pytest.raises(UsageError, match="serves 2 models, and none was named") as refused:
        chosen(TWO, URL, None)

    assert refused.value.hint == "name one as target.model in assay.toml, or with --model: a, b"
    assert chosen(TWO, URL, "b")["id"] == "b"


def test_a_model_that_is_not_listed_is_refused_with_those_that_are() -> None:
    with pytest.raises(UsageError, match="does not serve 'c'") as refused:
        chosen([{"id": f"m{number}"} for number in range(12)], URL, "c")

    assert str(refused.value.hint).endswith("m9 and 2 more")


@pytest.mark.parametrize("answer", [None, [], {"data": 3}, {"data": [1, {"id": ""}, {"object": "model"}]}, "x"])
def test_an_answer_that_lists_nothing_lists_nothing(answer: object) -> None:
    assert entries(answer) == []
