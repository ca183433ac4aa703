"""The rules as data: whole, matched by their own examples, linear, and quick on any text."""

from __future__ import annotations

import re
import re._parser as sre  # type: ignore[import-not-found, unused-ignore]  # a pattern's structure is nowhere else
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.failures import Log, explain
from assay.failures.infer import load_inference
from assay.failures.lines import PREFIX, read
from assay.failures.raised import CARRIED, RAISED, RAISING, RELAYED
from assay.failures.rules import Rule, load_meanings, load_rules
from assay.failures.stages import EMBEDDED_FRAME, FRAME, load_stages
from assay.records.failure import Cause, Explanation, Stage

LOGS = sorted((Path(__file__).parent / "failure_logs").glob("*.log"))
TEXTS = [path.read_text(encoding="utf-8") for path in LOGS]
RULES = load_rules().rules
LONGEST_REPEAT = 400
"""Of any character: a search then costs at most so many steps a place."""
SHORT_REPEAT = 12
"""A group repeated so often costs a constant, whatever is repeated in it."""


def patterns() -> list[str]:
    stages = load_stages()
    markers = [*stages.frames, *stages.milestones, *stages.words]
    return [
        *(rule.pattern.pattern for rule in RULES),
        *(place.pattern.pattern for place in load_inference().places),
        *(told.pattern for each in load_inference().evidence for told in (each.raises, each.says) if told),
        RAISED.pattern,
        RAISING.pattern,
        RELAYED.pattern,
        CARRIED.pattern,
        EMBEDDED_FRAME.pattern,
        *(marker.pattern.pattern for marker in markers),
        stages.ready.pattern,
        stages.start.pattern,
        FRAME.pattern,
    ]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_matches_its_own_examples(rule: Rule) -> None:
    assert rule.examples
    for example in rule.examples:
        line = read(1, example.splitlines()[-1])
        assert any(word in example.lower() for word in rule.has), example
        assert rule.pattern.search(line.text if rule.whole else line.body), example
        assert line.level in rule.levels, example


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_is_chosen_for_its_first_example_or_one_with_the_same_cause_is(rule: Rule) -> None:
    indented = rule.examples[0].startswith("    ")
    before = ['  File "a.py", line 1, in f'] if indented else []
    lines = [*before, *rule.examples[0].splitlines()]

    found = explain([Log("x", lines)], engine=next(iter(rule.engines), None))

    causes = {rule.cause, *rule.cause_at.values()}
    assert found.cause in causes or ("oom" in causes and found.cause.startswith("oom-"))


def test_ids_are_unique() -> None:
    ids = [rule.id for rule in RULES]

    assert len(ids) == len(set(ids))


def test_words_are_in_lower_case_and_hold_no_digits() -> None:
    """Lines are told apart without their digits before words are looked for."""
    words = [*load_rules().by_word, *load_stages().milestone_has]

    assert [word for word in words if word != word.lower() or re.search(r"\d", word)] == []


def test_every_cause_has_a_meaning_and_every_cause_that_a_log_can_tell_has_a_rule() -> None:
    told = {str(cause) for rule in RULES for cause in (rule.cause, *rule.cause_at.values())}

    assert set(load_meanings()) == set(Cause)
    assert {str(cause) for cause in Cause} - told == {
        "oom-at-capture",
        "oom-under-load",
        "artifact",
        "none",
    }


def test_stages_are_those_of_the_record() -> None:
    stages = load_stages()
    named = {marker.stage for marker in (*stages.frames, *stages.milestones, *stages.words)}
    named |= {stage for rule in RULES for stage in (rule.stage, rule.default_stage) if stage}
    named |= {meaning.stage for meaning in load_meanings().values()}

    assert named <= set(get_args(Stage))


def test_what_a_rule_says_names_only_groups_that_it_has() -> None:
    for rule in RULES:
        groups = set(rule.pattern.groupindex)
        texts = [rule.remedy or "", *(text for each in rule.implies or () for text in each.values())]
        assert {name for text in texts for name in re.findall(r"\{(\w+)\}", text)} <= groups, rule.id


def test_no_pattern_repeats_a_group_without_bound_or_a_long_repeat() -> None:
    """So no line makes a search take more than a bounded number of steps a character."""
    bad = {pattern: found for pattern in patterns() if (found := list(_bad_repeats(sre.parse(pattern), False)))}

    assert bad == {}


def _bad_repeats(tree: Any, inside: bool) -> Any:
    for kind, value in tree:
        name = str(kind)
        if name in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}:
            _, most, body = value
            most = int(most)
            is_one_character = len(body) == 1 and str(body[0][0]) in {"IN", "LITERAL", "NOT_LITERAL", "ANY"}
            is_any = str(body[0][0]) == "ANY"
            if most > LONGEST_REPEAT and (is_any or not is_one_character):
                yield f"unbounded {body}"
            if inside and most > SHORT_REPEAT:
                yield f"nested {body}"
            yield from _bad_repeats(body, most > SHORT_REPEAT)
        elif name == "BRANCH":
            for branch in value[1]:
                yield from _bad_repeats(branch, inside)
        elif name in {"SUBPATTERN", "ASSERT", "ASSERT_NOT"}:
            yield from _bad_repeats(value[-1], inside)


def told(text: str, exit_code: int | None = None) -> Explanation:
    return explain([Log("fuzzed", text.splitlines(keepends=True))], exit_code)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A look-alike log, cut, repeated, shuffled, joined with another, and with characters replaced."""
    text = draw(st.sampled_from(TEXTS))
    other = draw(st.sampled_from(TEXTS))
    lines = text.splitlines(keepends=True)
    match draw(st.integers(0, 5)):
        case 0:
            return text[draw(st.integers(0, len(text))) :]
        case 1:
            return text[: draw(st.integers(0, len(text)))] + other
        case 2:
            return "".join(draw(st.permutations(lines)))
        case 3:
            place = draw(st.integers(0, len(text)))
            return text[:place] + draw(st.text(max_size=60)) + text[place:]
        case 4:
            return text.replace(draw(st.sampled_from(list(" :([\n'\"0e"))), draw(st.text(max_size=3)))
        case _:
            return draw(st.sampled_from(lines)) * draw(st.integers(1, 40))


@settings(max_examples=150, deadline=1000, suppress_health_check=[HealthCheck.too_slow])
@given(mutated(), st.none() | st.integers(-70_000, 70_000))
def test_a_mutated_log_is_answered_with_a_line_that_it_has(text: str, exit_code: int | None) -> None:
    found = told(text, exit_code)

    assert Explanation.model_validate_json(found.model_dump_json()) == found
    if found.line is not None:
        assert 1 <= found.line <= found.num_lines
        assert any(each.number == found.line for each in found.around)
    else:
        assert found.quote is None


@settings(max_examples=60, deadline=1000)
@given(st.text(max_size=400))
def test_any_text_is_answered(text: str) -> None:
    assert told(text).num_lines == len(text.splitlines())


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        " ",
        "0",
        "(",
        "[",
        "Error: ",
        "not supported with ",
        "error: argument -",
        "assert ",
        "x.so.",
        "\\",
        'File "',
    ],
)
def test_a_long_line_of_one_thing_over_and_over_is_read_in_a_bounded_number_of_steps(unit: str) -> None:
    """Whole, and behind the start of every rule's example, so that the search begins."""
    starts = {example[: len(example) // 2] for rule in RULES for example in rule.examples[:1]}
    lines = [(start + unit * 2048)[:2048] for start in starts]

    assert explain([Log("long", lines)]).num_lines == len(lines)


def test_the_prefix_of_a_line_is_no_longer_than_the_line() -> None:
    text = "(EngineCore_DP0 pid=9) ERROR 01-01 00:00:31 [core.py:700]     raise ValueError("

    line = read(7, text)

    assert (line.who, line.level, line.body) == ("EngineCore_DP0 pid=9", "error", "    raise ValueError(")
    assert PREFIX.match("nothing here") is None
