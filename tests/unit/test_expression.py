"""The condition language: small, safe, and honest about what is not known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.plan.expression import ABSENT, ExpressionError, check, evaluate

FACTS = {
    "model": {"num_experts": None, "layers": 30, "architecture": "llama"},
    "machine": {"usable_cores": 8},
    "flag": lambda name, default=None: {"--threads": 4}.get(name, default),
    "true": True,
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("model.layers > 20 and model.layers < 40", True),
        ("10 < model.layers < 20", False),
        ("not model.layers == 30", False),
        ('model.architecture in ["llama", "qwen3"]', True),
        ('flag("--threads") * 2 == machine.usable_cores', True),
        ('flag("--parallel", 1) + 1', 2),
        ("machine.usable_cores // 3", 2),
        ("-1 < 0", True),
    ],
)
def test_what_it_can_say(text: str, value: object) -> None:
    assert evaluate(text, FACTS) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("model.num_experts > 8", None),
        ("model.num_experts > 8 and model.layers > 100", False),
        ("model.num_experts > 8 or model.layers > 1", True),
        ("not (model.num_experts > 8)", None),
        ("model.num_experts + 1", None),
    ],
)
def test_an_unknown_fact_makes_unknown_only_what_hangs_on_it(text: str, value: object) -> None:
    assert evaluate(text, FACTS) is value


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "(lambda: 1)()",
        "model.__class__",
        "[x for x in (1,)]",
        "flag.__globals__",
        "model.nothing == 1",
        "1 +",
        "2 ** 9999999",
        "'a' < 1",
        "1 / 0",
        "x" * 600,
        "(" * 300 + ")" * 300,
        "f'{model}'",
    ],
)
def test_everything_else_is_refused_with_an_error_that_says_where(text: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        evaluate(text, FACTS)
    assert "\n" in caught.value.message or caught.value.hint


@given(st.text(max_size=80))
def test_arbitrary_text_never_does_anything_but_evaluate_or_refuse(text: str) -> None:
    try:
        evaluate(text, FACTS)
    except ExpressionError:
        return


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("machine.usable_cores > 8", "machine.usable_cores > 8 is false: machine.usable_cores = 8"),
        ("not machine.usable_cores == 8", "machine.usable_cores == 8 is true: machine.usable_cores = 8"),
        ("true and model.layers < 3", "model.layers < 3 is false: model.layers = 30"),
        (
            "model.layers < 3 or model.layers > 90",
            "model.layers < 3 is false: model.layers = 30 and model.layers > 90 is false: model.layers = 30",
        ),
        ("not (true or model.layers < 3)", "true is true"),
        ("model.num_experts > 8", "cannot be decided: model.num_experts is unknown"),
        ("model.num_experts > flag('-x')", "cannot be decided: flag('-x'), model.num_experts are unknown"),
    ],
)
def test_a_condition_that_does_not_hold_says_which_part_decided_and_on_what_values(text: str, reason: str) -> None:
    outcome = check(text, FACTS)

    assert not outcome.holds
    assert outcome.reason == reason


def test_a_condition_that_holds_gives_no_reason() -> None:
    assert check("model.layers == 30", FACTS).reason == ""
    assert check("model.layers == 30", FACTS).holds


@pytest.mark.parametrize(
    ("text", "value"),
    [("model.num_experts == None", True), ("model.num_experts != None", False), ("None == model.layers", False)],
)
def test_comparing_with_none_asks_whether_a_fact_is_known(text: str, value: object) -> None:
    assert evaluate(text, FACTS) is value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("gpu.capability >= 9", False),
        ("gpu.capability < 9", False),
        ("not gpu.capability >= 9", True),
        ("gpu.capability == 9 or gpu.capability != 9", True),
        ("gpu.capability in (8, 9)", False),
        ("gpu.capability not in (8, 9)", True),
        ("gpu.capability + 1 > 0", False),
        ("gpu.capability == None", False),
        ("gpu.nvlink and true", False),
    ],
)
def test_what_there_is_not_is_known_and_only_differs(text: str, value: object) -> None:
    assert evaluate(text, {"gpu": {"capability": ABSENT, "nvlink": ABSENT}, "true": True}) is value


@pytest.mark.parametrize("text", ["model.layers", "'yes'", "not 1", "model.layers and true"])
def test_a_number_or_a_text_is_no_condition(text: str) -> None:
    with pytest.raises(ExpressionError, match="no condition"):
        check(text, FACTS)


@pytest.mark.parametrize(
    ("text", "column"),
    [("model.layers > > 3", 16), ("model.layers = 30", 14), ("(1 + 2", 7), ("1 2", 3), ("model.", 7), ("1 + 'a", 5)],
)
def test_an_error_points_at_its_column(text: str, column: int) -> None:
    with pytest.raises(ExpressionError) as caught:
        check(text, FACTS)

    assert caught.value.column == column
    shown, caret = caught.value.message.splitlines()[1:]
    assert shown.strip() == text
    assert len(caret) - len(shown) + len(text) == column


DEEP = ["-", "not ", "(", "[", "flag(", "model[", "a.", "1+", "1<", "true and "]


@pytest.mark.parametrize("part", DEEP)
@pytest.mark.parametrize("tail", ["1", "", ")" * 99])
def test_nesting_and_repetition_are_bounded(part: str, tail: str) -> None:
    text = (part * 500)[: 500 - len(tail)] + tail
    try:
        value = evaluate(text, FACTS)
    except ExpressionError:
        return
    assert isinstance(value, bool | int)


@given(
    st.lists(st.sampled_from([*DEEP, "model.layers", "model.num_experts", "1", "'a'", " ", ")", "]", ".", ",", " in "]))
)
def test_any_row_of_its_own_words_evaluates_or_is_refused(words: list[str]) -> None:
    try:
        check("".join(words), FACTS)
    except ExpressionError:
        return


@given(st.integers(-99, 99), st.integers(-99, 99), st.sampled_from(["+", "-", "*", "<", ">=", "=="]))
def test_arithmetic_and_comparison_agree_with_pythons(a: int, b: int, sign: str) -> None:
    expected = {"+": a + b, "-": a - b, "*": a * b, "<": a < b, ">=": a >= b, "==": a == b}[sign]

    assert evaluate(f"{a} {sign} {b}", FACTS) == expected
