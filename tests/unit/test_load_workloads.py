"""Workloads: made here or read from files, the same for every process of a seed."""

from __future__ import annotations

import hashlib
import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise, takewhile
from pathlib import Path
from random import Random
from statistics import NormalDist, fmean, stdev
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.errors import MeasurementError, UsageError
from assay.load.exchange import Exchange
from assay.load.schedule import Due
from assay.load.spool import spooled
from assay.load.workloads import READERS, Source, build
from assay.load.workloads.detect import detect
from assay.load.workloads.lengths import draw
from assay.load.workloads.prompts import TextPrompts, TokenPrompts, corpus_text
from assay.load.workloads.spelling import parse_arrival, parse_workload
from assay.records.bench import Arrival, Dataset, Lengths, Synthetic


def words(text: str) -> list[int]:
    return [zlib.crc32(word.encode()) for word in re.findall(r"\w+|[^\w\s]", text)]


TOKENS = TokenPrompts(words(corpus_text(1)))
TEXT = TextPrompts(1.25)
LONG = "Tell me all that is known about the yellow bridge of that village, please."
ANSWER = "It was painted in one night by somebody whom nobody there remembers any more."


def written(folder: Path, content: str | list[Any] | bytes, name: str = "data") -> str:
    """The path of a file with this text, or with these objects as JSONL."""
    path = folder / name
    if isinstance(content, list):
        content = "".join(json.dumps(row) + "\n" for row in content)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def source(kind: str, path: str, seed: int = 1, **fields: Any) -> Source:
    return build(Dataset(kind=kind, path=path, **fields), seed, TOKENS)


def sessions(of: Source) -> list[Any]:
    assert of.num_sessions is not None
    return [of.session(index) for index in range(of.num_sessions)]


def prompts(of: Source) -> list[Any]:
    return [session.requests[0].prompt for session in sessions(of)]


def outputs(of: Source) -> list[int]:
    return [session.requests[0].output_tokens for session in sessions(of)]


def refusal(kind: str, path: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        source(kind, path)
    assert caught.value.hint
    return caught.value


def longest_shared_prefix(prompts: Iterable[list[int]]) -> int:
    """Tokens that the two most similar beginnings have in common: in sorted order these two are neighbours."""
    return max(shared(one, other) for one, other in pairwise(sorted(prompts)))


def shared(one: list[int], other: list[int]) -> int:
    same = (left == right for left, right in zip(one, other, strict=False))
    return sum(takewhile(bool, same))


# --- prompts


def test_a_piece_has_exactly_the_tokens_asked_for_from_none_to_more_than_the_corpus():
    for number in (0, 1, 4, 5, 6, 500, 9_000):
        assert len(TOKENS.join([TOKENS.piece("a", number)])) == number


@pytest.mark.parametrize("maker", [TOKENS, TEXT])
def test_a_piece_is_a_pure_function_of_its_key_and_a_short_one_begins_a_long_one(maker: TokenPrompts | TextPrompts):
    long = maker.join([maker.piece("key", 3_000)])
    assert maker.join([maker.piece("key", 3_000)]) == long
    for number in (1, 3, 40, 2_999):
        short = maker.join([maker.piece("key", number)])
        assert long[: len(short)] == short
    assert maker.join([maker.piece("other", 3_000)])[:20] != long[:20]


def test_most_of_a_piece_is_running_text():
    stream = words(corpus_text(1))
    running = set(pairwise(stream))
    piece = TOKENS.join([TOKENS.piece("a", 400)])
    assert sum(pair in running for pair in pairwise(piece)) > 0.95 * len(piece)


def test_pieces_are_joined_in_order_as_ids_or_as_text():
    one, other = TOKENS.piece("one", 7), TOKENS.piece("other", 8)
    assert TOKENS.join([one, other]) == one.ids + other.ids
    first, second = TEXT.piece("one", 10), TEXT.piece("other", 10)
    assert TEXT.join([first, second]) == " ".join([*first.words, *second.words])


def test_text_prompts_have_as_many_words_as_the_tokens_make_on_the_average():
    text = TEXT.join([TEXT.piece("a", 1_000)])
    assert len(text.split()) == 800
    assert len(TEXT.join([TEXT.piece("a", 1)]).split()) == 1
    assert TEXT.join([TEXT.piece("a", 0)]) == ""


def test_the_tokens_of_a_given_text_are_estimated_from_its_bytes():
    text = corpus_text(5)
    assert TOKENS.estimate_tokens(text) == pytest.approx(len(words(text)), rel=0.01)
    assert TEXT.estimate_tokens(text) == pytest.approx(len(text.split()) * 1.25, rel=0.01)
    assert TOKENS.estimate_tokens("") == 1


def test_a_tokenizer_with_too_few_tokens_is_refused_with_the_numbers():
    with pytest.raises(MeasurementError, match="3 distinct"):
        TokenPrompts([1, 2, 3] * 500)


@pytest.mark.parametrize("ratio", [0.0, -1.0, math.inf, math.nan])
def test_a_senseless_count_of_tokens_per_word_is_refused(ratio: float):
    with pytest.raises(MeasurementError, match="tokens a word"):
        TextPrompts(ratio)


# --- synthetic


def test_synthetic_prompts_of_a_seed_and_of_other_seeds_share_no_more_than_their_opening():
    made = [
        build(Synthetic(), seed, TOKENS).session(index).requests[0].prompt
        for seed in range(1, 6)
        for index in range(1_000)
    ]
    assert len({tuple(prompt) for prompt in made}) == 5_000
    assert longest_shared_prefix(made) <= 5


def test_texts_after_a_declared_prefix_are_told_apart_and_a_repeated_one_is_found():
    source = build(Synthetic(prefix_groups=2, prefix_tokens=64), 1, TextPrompts(1.3))
    planned = [source.session(index).requests[0] for index in [*range(1_000), 7]]
    exchanges = [Exchange(Due(planned=one, intended_ns=0), 0, 0, lambda _at_ns: None) for one in planned]
    assert len({spooled(exchange).opening for exchange in exchanges}) == 1_000


def test_session_n_is_the_same_in_whatever_order_and_by_whichever_process_it_is_made():
    workload = parse_workload("synthetic:input=10-90,output=5-50,prefix=3x16")
    forward = [build(workload, 3, TOKENS).session(index) for index in range(40)]
    other = build(workload, 3, TOKENS)
    assert [other.session(index) for index in reversed(range(40))] == forward[::-1]
    assert build(workload, 4, TOKENS).session(0) != forward[0]


def test_synthetic_lengths_are_exact_declared_and_without_end():
    endless = build(parse_workload("synthetic:input=24-64,output=16-48"), 1, TOKENS)
    requests = [endless.session(index).requests[0] for index in range(2_000)]
    assert (endless.num_sessions, endless.instants_s, endless.file_sha256) == (None, None, None)
    assert {len(request.prompt) for request in requests} == set(range(24, 65))
    assert {request.output_tokens for request in requests} == set(range(16, 49))
    assert all(request.input_tokens == len(request.prompt) for request in requests)
    assert {request.shared_tokens for request in requests} == {0}
    assert endless.session(10**9).requests[0].prompt
    with pytest.raises(IndexError):
        endless.session(-1)


def test_requests_of_a_prefix_group_share_its_prefix_and_nothing_else():
    grouped = build(parse_workload("synthetic:input=20,prefix=4x100"), 1, TOKENS)
    requests = [grouped.session(index).requests[0] for index in range(400)]
    groups = Counter(tuple(request.prompt[:100]) for request in requests)
    assert len(groups) == 4
    assert min(groups.values()) > 60  # binomial(400, 1/4): 60 is 4.6 standard deviations below the mean
    assert longest_shared_prefix([list(prefix) for prefix in groups]) <= 5
    assert longest_shared_prefix([request.prompt[100:] for request in requests]) <= 5
    assert {(request.shared_tokens, request.input_tokens, len(request.prompt)) for request in requests} == {
        (100, 120, 120)
    }


@pytest.mark.parametrize(("kind", "sd"), [("normal", 60.0), ("lognormal", 300.0)])
def test_lengths_have_the_mean_and_deviation_asked_for(kind: str, sd: float):
    """Of n draws the mean errs by sd / sqrt(n), the deviation by sd sqrt((kurtosis - 1) / 4n); bound: 4 of those."""
    lengths = Lengths(kind=kind, mean=512.0, sd=sd)
    drawn = [draw(lengths, Random(f"{kind}/{number}")) for number in range(20_000)]
    cv_squared = (sd / 512.0) ** 2
    w = 1 + cv_squared
    kurtosis = 3.0 if kind == "normal" else w**4 + 2 * w**3 + 3 * w**2 - 3
    assert abs(fmean(drawn) - 512.0) < 4 * sd / math.sqrt(20_000)
    assert abs(stdev(drawn) - sd) < 4 * sd * math.sqrt((kurtosis - 1) / 4 / 20_000)


def test_the_median_of_lognormal_lengths_lies_where_the_law_says():
    lengths = Lengths(kind="lognormal", mean=512.0, sd=256.0)
    median = 512.0 / math.sqrt(1 + 0.25)
    below = sum(draw(lengths, Random(number)) < median for number in range(10_000))
    assert abs(below - 5_000) < NormalDist().inv_cdf(0.9999) * 50 + 20  # rounding moves at most some 20 of them


def test_lengths_are_clipped_to_their_bounds_and_fixed_ones_are_fixed():
    clipped = Lengths(kind="normal", mean=50.0, sd=40.0, low=30, high=70)
    assert {draw(clipped, Random(number)) for number in range(3_000)} == set(range(30, 71))
    assert {draw(Lengths(kind="fixed", mean=12.4), Random(number)) for number in range(20)} == {12}


# --- ShareGPT


def sharegpt(*exchanges: tuple[str, str]) -> str:
    return json.dumps(
        [
            {"id": f"x{number}", "conversations": [{"from": "human", "value": ask}, {"from": "gpt", "value": answer}]}
            for number, (ask, answer) in enumerate(exchanges)
        ]
    )


def test_sharegpt_gives_the_first_question_and_the_length_of_its_answer(tmp_path: Path):
    said = [
        {"from": "system", "value": "Be brief."},
        {"from": "human", "value": LONG},
        {"from": "gpt", "value": ANSWER},
        {"from": "human", "value": "And who paid?"},
        {"from": "gpt", "value": "Nobody."},
    ]
    read = source("sharegpt", written(tmp_path, json.dumps([{"id": "a", "conversations": said}])))
    (session,) = sessions(read)
    (request,) = session.requests
    assert (request.prompt, request.input_tokens, session.at_s) == (LONG, None, None)
    assert request.output_tokens == pytest.approx(len(words(ANSWER)), abs=3)
    assert read.instants_s is None


def test_sharegpt_leaves_out_what_the_field_leaves_out_and_says_how_many(tmp_path: Path):
    path = written(
        tmp_path,
        sharegpt(
            (LONG, ANSWER),
            (LONG, "The same question again: a prefix cache would answer it."),
            ("Hi", ANSWER),
            (LONG + "?", "Yes."),
            ("A word. " * 1_000, ANSWER),
            (LONG + "!", "A word. " * 1_200),
        ),
    )
    read = source("sharegpt", path)
    assert prompts(read) == [LONG]
    assert sum(read.skipped.values()) == 5
    assert read.skipped["came before"] == 1


def test_sharegpt_leaves_out_questions_without_an_answer(tmp_path: Path):
    rows = [
        {"id": "a", "conversations": []},
        {"id": "b", "conversations": [{"from": "gpt", "value": ANSWER}]},
        {"id": "c", "conversations": [{"from": "human", "value": LONG}]},
        {"id": "d", "conversations": [{"from": "human", "value": LONG}, {"from": "human", "value": LONG}]},
        {"id": "e", "conversations": [{"from": "human", "value": LONG}, {"from": "chatgpt", "value": ANSWER}]},
    ]
    read = source("sharegpt", written(tmp_path, rows))
    assert prompts(read) == [LONG]
    assert read.skipped == {"no question with an answer": 4}


def test_the_order_of_sharegpt_is_drawn_by_the_seed_before_its_first_requests_are_taken(tmp_path: Path):
    path = written(tmp_path, sharegpt(*((f"{LONG} {number}", ANSWER) for number in range(50))))
    first, again, other = (prompts(source("sharegpt", path, seed, max_requests=20)) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert len(first) == len(set(first)) == 20


# --- Mooncake


def call(at_ms: float, num_input: int, num_output: int, *hash_ids: int) -> dict[str, Any]:
    return {"timestamp": at_ms, "input_length": num_input, "output_length": num_output, "hash_ids": list(hash_ids)}


def test_mooncake_blocks_are_shared_where_their_hashes_are_equal_and_nowhere_else(tmp_path: Path):
    read = source(
        "mooncake",
        written(tmp_path, [call(0, 1_300, 10, 0, 1, 2), call(500, 1_500, 20, 0, 1, 3), call(3_052, 600, 30, 7, 8)]),
    )
    first, second, third = prompts(read)
    assert [len(prompt) for prompt in (first, second, third)] == [1_300, 1_500, 600]
    assert first[:1_024] == second[:1_024]
    assert longest_shared_prefix([first[1_024:], second[1_024:]]) <= 5
    assert longest_shared_prefix([first, third]) <= 5
    assert [session.requests[0].shared_tokens for session in sessions(read)] == [0, 1_024, 0]
    assert [session.at_s for session in sessions(read)] == pytest.approx([0.0, 0.5, 3.052])
    assert outputs(read) == [10, 20, 30]


def test_a_prompt_that_came_before_is_declared_as_shared_to_its_end_and_a_longer_one_only_as_far(tmp_path: Path):
    read = source(
        "mooncake",
        written(
            tmp_path, [call(0, 655, 5, 46, 47), call(1, 655, 5, 46, 47), call(2, 672, 5, 46, 47), call(3, 1_024, 5)]
        ),
    )
    first, second, third, own = prompts(read)
    assert first == second == third[:655]
    assert [session.requests[0].shared_tokens for session in sessions(read)] == [0, 655, 655, 0]
    assert longest_shared_prefix([first, own]) <= 5


def test_tokens_beyond_the_last_block_are_the_requests_own(tmp_path: Path):
    read = source("mooncake", written(tmp_path, [call(0, 1_000, 5, 1), call(1, 1_000, 5, 1)]))
    first, second = prompts(read)
    assert first[:512] == second[:512]
    assert longest_shared_prefix([first[512:], second[512:]]) <= 5
    assert [session.requests[0].shared_tokens for session in sessions(read)] == [0, 512]


def test_a_block_after_one_that_differs_is_not_declared_as_shared(tmp_path: Path):
    read = source("mooncake", written(tmp_path, [call(0, 1_536, 5, 1, 2, 3), call(1, 1_536, 5, 1, 9, 3)]))
    assert [session.requests[0].shared_tokens for session in sessions(read)] == [0, 512]


def test_another_seed_fills_a_trace_with_other_text(tmp_path: Path):
    path = written(tmp_path, [call(0, 700, 5, 1, 2)])
    one, other = (prompts(source("mooncake", path, seed))[0] for seed in (1, 2))
    assert longest_shared_prefix([one, other]) <= 5


def test_hashes_for_more_blocks_than_the_prompt_has_are_refused(tmp_path: Path):
    error = refusal("mooncake", written(tmp_path, [call(0, 512, 5, 1), call(0, 512, 5, 1, 2)]))
    assert "line 2: found 2 hash_ids for 512 input tokens, expected at most 1" in error.message


# --- BurstGPT and Azure

BURSTGPT = """Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
5,ChatGPT,472,18,490,Conversation log
45,ChatGPT,1087,0,1087,Conversation log
110.5,GPT-4,417,505,922,API log
"""
AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:50.9951690,396,109
2023-11-16 18:15:51,879,55
"""


def test_burstgpt_gives_instants_and_lengths_and_leaves_out_what_failed(tmp_path: Path):
    read = source("burstgpt", written(tmp_path, BURSTGPT))
    assert [len(prompt) for prompt in prompts(read)] == [472, 417]
    assert outputs(read) == [18, 505]
    assert read.instants_s == [0.0, 105.5]
    assert read.skipped == {"failed: no input or no output tokens": 1}
    assert longest_shared_prefix(prompts(read)) <= 5


def test_columns_are_found_by_their_names_and_others_are_ignored(tmp_path: Path):
    text = (
        '"Log Type","Timestamp","Session ID","Response tokens","Request tokens"\r\n"API log","3.5",7,"20.0","10.0"\r\n'
    )
    read = source("burstgpt", written(tmp_path, "\ufeff" + text))
    assert ([len(prompt) for prompt in prompts(read)], outputs(read)) == ([10], [20])


def test_azure_stamps_of_seven_digits_or_none_become_seconds_since_the_first(tmp_path: Path):
    read = source("azure", written(tmp_path, AZURE))
    assert read.instants_s == pytest.approx([0.0, 4.314579, 4.319410], abs=2e-6)
    assert [session.at_s for session in sessions(read)] == read.instants_s
    assert [session.requests[0].input_tokens for session in sessions(read)] == [374, 396, 879]
    assert outputs(read) == [44, 109, 55]


def test_azure_stamps_may_have_a_time_zone(tmp_path: Path):
    text = AZURE.replace("46.6805900", "46.680590+00:00")
    assert source("azure", written(tmp_path, text)).instants_s == pytest.approx([0.0, 4.314579, 4.319410], abs=2e-6)


def test_a_trace_out_of_order_is_put_in_order_and_its_first_requests_are_the_earliest(tmp_path: Path):
    rows = ["Timestamp,Request tokens,Response tokens", "9,90,1", "3,30,2", "9,91,3", "1,10,4"]
    path = written(tmp_path, "\n".join(rows))
    assert [len(prompt) for prompt in prompts(source("burstgpt", path))] == [10, 30, 90, 91]
    assert outputs(source("burstgpt", path, max_requests=2)) == [4, 2]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("soon,ChatGPT,1,2,3,x", 'line 3: found "soon" as "Timestamp", expected seconds'),
        ("nan,ChatGPT,1,2,3,x", 'line 3: found "nan" as "Timestamp", expected seconds'),
        ("7,ChatGPT,many,2,3,x", 'line 3: found "many" as "Request tokens", expected a whole number of tokens'),
        ("7,ChatGPT,1,2.5,3,x", 'line 3: found "2.5" as "Response tokens", expected a whole number of tokens'),
        ("7,ChatGPT,-1,2,3,x", 'line 3: found "-1" as "Request tokens"'),
        ("7,ChatGPT,99999999999,2,3,x", 'line 3: found "99999999999" as "Request tokens"'),
        ("7,ChatGPT", "line 3: found 2 fields, expected 4 at least"),
    ],
)
def test_a_broken_line_of_a_trace_is_named_with_what_it_holds(tmp_path: Path, line: str, told: str):
    path = written(tmp_path, "\n".join([*BURSTGPT.splitlines()[:2], line]))
    error = refusal("burstgpt", path)
    assert error.message.startswith(path)
    assert told in error.message


def test_a_trace_without_its_columns_is_refused_with_those_it_has(tmp_path: Path):
    error = refusal("azure", written(tmp_path, BURSTGPT))
    assert 'line 1: found "Timestamp", "Model"' in error.message
    assert '"TIMESTAMP", "ContextTokens", "GeneratedTokens"' in error.message


def test_a_trace_of_nothing_but_failures_is_refused_with_their_number(tmp_path: Path):
    error = refusal("burstgpt", written(tmp_path, "Timestamp,Request tokens,Response tokens\n1,5,0\n2,6,0\n"))
    assert "no request that could be sent (2 left out: failed" in error.message


# --- JSONL


def test_own_requests_are_sent_as_written_under_any_of_the_spellings_of_their_length(tmp_path: Path):
    rows = [
        {"prompt": "One", "output_tokens": 1},
        {"prompt": "Two", "output_len": 2, "note": "ignored"},
        {"prompt": [7, 8, 9], "max_tokens": 3},
        {"messages": [{"role": "user", "content": "Four"}], "output_tokens": 4.0},
        {
            "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Five"}],
            "output_tokens": 5,
        },
    ]
    read = source("jsonl", written(tmp_path, rows))
    requests = [session.requests[0] for session in sessions(read)]
    assert [request.prompt for request in requests] == ["One", "Two", [7, 8, 9], "Four", "Five"]
    assert outputs(read) == [1, 2, 3, 4, 5]
    assert [request.input_tokens for request in requests] == [None, None, 3, None, None]
    assert [request.system for request in requests] == [None, None, None, None, "Be kind."]
    assert read.instants_s is None


def test_own_requests_with_instants_are_sent_in_order_of_time(tmp_path: Path):
    rows = [
        {"prompt": "late", "output_tokens": 1, "timestamp": 4_500},
        {"prompt": "early", "output_tokens": 1, "at_s": 2.0},
    ]
    read = source("jsonl", written(tmp_path, rows))
    assert prompts(read) == ["early", "late"]
    assert read.instants_s == [0.0, 2.5]


def test_instants_for_some_requests_only_are_refused(tmp_path: Path):
    rows = [{"prompt": "a", "output_tokens": 1, "at_s": 1}, {"prompt": "b", "output_tokens": 1}]
    assert "1 of 2 requests without an instant" in refusal("jsonl", written(tmp_path, rows)).message


def test_answers_already_given_are_refused_with_the_way_to_play_them(tmp_path: Path):
    said = [{"role": role, "content": "x"} for role in ("user", "assistant", "user")]
    path = written(tmp_path, [{"messages": said, "output_tokens": 4}])
    error = refusal("jsonl", path)
    assert 'line 1: found messages of "user", "assistant", "user"' in error.message
    assert f"conversations:{path}" in str(error.hint)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "line 3, column 2: found the end of the text, expected JSON"),
        ('{"prompt": nope}', 'line 3, column 12: found "nope}", expected JSON'),
        ("17", "line 3: found 17, expected a JSON object"),
        ('{"output_tokens": 4}', 'line 3: found the keys "output_tokens", expected a value for "prompt" or "messages"'),
        ('{"prompt": "x"}', 'expected a value for "output_tokens" or "output_len" or "max_tokens"'),
        ('{"prompt": "x", "output_tokens": "4"}', 'found "4" as "output_tokens"'),
        ('{"prompt": "x", "output_tokens": 0}', "expected a whole number from 1 to 10,000,000"),
        ('{"prompt": "x", "output_tokens": true}', "found true as"),
        ('{"prompt": "x", "output_tokens": 1e400}', "found a number too large as"),
        ('{"prompt": "x", "output_tokens": NaN}', "NaN is no JSON number"),
        ('{"prompt": "", "output_tokens": 4}', "found an empty text as prompt"),
        ('{"prompt": [], "output_tokens": 4}', "found a list of 0 as prompt"),
        ('{"prompt": [1, "a"], "output_tokens": 4}', "a list of token ids"),
        ('{"prompt": 5, "output_tokens": 4}', 'found 5 as "prompt", expected a text'),
        ('{"prompt": "x", "output_tokens": 4, "at_s": -1}', 'found -1 as "at_s", expected a number, 0 or more'),
        ('{"messages": {}, "output_tokens": 4}', 'found an object of 0 keys as "messages", expected a list'),
        ('{"messages": [4], "output_tokens": 4}', "line 3, messages[0]: found 4, expected a JSON object"),
        ('{"messages": [], "output_tokens": 4}', "found messages of nobody"),
    ],
)
def test_a_broken_line_is_named_with_what_it_holds_and_what_was_expected(tmp_path: Path, line: str, told: str):
    path = written(tmp_path, f'{{"prompt": "good", "output_tokens": 4}}\n\n{line}\n')
    error = refusal("jsonl", path)
    assert error.message.startswith(f"{path}, line 3")
    assert told in error.message


def test_half_of_a_surrogate_pair_becomes_a_question_mark(tmp_path: Path):
    read = source("jsonl", written(tmp_path, '{"prompt": "a\\ud83db", "output_tokens": 4}'))
    assert prompts(read) == ["a?b"]


def test_line_ends_inside_a_text_do_not_end_its_line(tmp_path: Path):
    row = {"conversations": [{"from": "human", "value": LONG + "\u2028\x85"}, {"from": "gpt", "value": ANSWER}]}
    path = written(tmp_path, json.dumps(row, ensure_ascii=False) + "\n")
    assert prompts(source("sharegpt", path)) == [LONG + "\u2028\x85"]


# --- conversations


def test_scripted_conversations_are_sessions_of_turns_with_thinking_between(tmp_path: Path):
    rows = [
        {"turns": [{"user": "Hi", "output_tokens": 3}, {"content": "And?", "output_tokens": 4}], "think_s": 1.5},
        {"turns": [{"user": "Alone", "output_tokens": 5}], "system": "Be kind."},
    ]
    first, second = sessions(source("conversations", written(tmp_path, rows)))
    assert [(turn.prompt, turn.output_tokens, turn.turn, turn.last_turn) for turn in first.requests] == [
        ("Hi", 3, 0, False),
        ("And?", 4, 1, True),
    ]
    assert (first.think_s, second.think_s) == (1.5, 0.0)
    assert [turn.index for turn in first.requests] == [0, 0]
    assert (second.index, second.requests[0].system, second.requests[0].last_turn) == (1, "Be kind.", True)


def test_recorded_conversations_are_played_until_something_comes_out_of_turn(tmp_path: Path):
    said = [("system", "Be brief."), ("human", LONG), ("gpt", ANSWER), ("human", "Why?"), ("gpt", "So."), ("gpt", "!")]
    rows = [
        {"conversations": [{"from": speaker, "value": text} for speaker, text in said]},
        {"messages": [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": ANSWER}]},
        {"messages": [{"role": "user", "content": "Nobody answered"}]},
    ]
    read = source("conversations", written(tmp_path, rows))
    by_prompt = {session.requests[0].prompt: session for session in sessions(read)}
    assert set(by_prompt) == {LONG, "Who?"}
    assert [turn.prompt for turn in by_prompt[LONG].requests] == [LONG, "Why?"]
    assert [turn.output_tokens for turn in by_prompt[LONG].requests] == [TOKENS.estimate_tokens(ANSWER), 1]
    assert {turn.system for turn in by_prompt[LONG].requests} == {"Be brief."}
    assert read.skipped == {"no question with an answer": 1}


def test_conversations_with_instants_are_played_in_order_of_time(tmp_path: Path):
    rows = [{"turns": [{"user": str(at), "output_tokens": 1}], "at_s": at} for at in (9, 4, 6)]
    read = source("conversations", written(tmp_path, rows), max_requests=2)
    assert prompts(read) == ["4", "6"]
    assert read.instants_s == [0.0, 2.0]


def test_a_conversation_without_turns_is_refused(tmp_path: Path):
    assert "found no turns" in refusal("conversations", written(tmp_path, [{"turns": []}])).message
    told = refusal("conversations", written(tmp_path, [{"id": 4}])).message
    assert 'expected a value for "conversations" or "messages" or "turns"' in told


# --- all files

GOOD: dict[str, str] = {
    "sharegpt": sharegpt((LONG, ANSWER), (LONG + "!", ANSWER)),
    "mooncake": json.dumps(call(0, 600, 5, 1, 2)) + "\n" + json.dumps(call(10, 700, 6, 1, 3)) + "\n",
    "burstgpt": BURSTGPT,
    "azure": AZURE,
    "jsonl": '{"prompt": "Hi", "output_tokens": 4}\n{"prompt": "Ho", "max_tokens": 5}\n',
    "conversations": '{"turns": [{"user": "Hi", "output_tokens": 3}], "think_s": 1}\n',
}


@pytest.mark.parametrize("kind", sorted(GOOD))
def test_every_kind_is_found_out_from_the_file_and_hashed_and_refused_when_it_changed(tmp_path: Path, kind: str):
    path = written(tmp_path, GOOD[kind])
    digest = hashlib.sha256(GOOD[kind].encode()).hexdigest()
    assert parse_workload(path) == Dataset(kind=kind, path=path)
    assert source(kind, path).file_sha256 == digest
    assert source(kind, path, sha256=digest).num_sessions == source(kind, path).num_sessions
    with pytest.raises(UsageError, match="has changed"):
        source(kind, path, sha256="0" * 64)


@pytest.mark.parametrize("kind", sorted(GOOD))
def test_sessions_end_with_the_file_and_fewer_can_be_asked_for(tmp_path: Path, kind: str):
    path = written(tmp_path, GOOD[kind])
    read = source(kind, path)
    assert read.num_sessions is not None
    for beyond in (-1, read.num_sessions):
        with pytest.raises(IndexError):
            read.session(beyond)
    assert [session.index for session in sessions(read)] == list(range(read.num_sessions))
    assert source(kind, path, max_requests=1).num_sessions == 1


@pytest.mark.parametrize("kind", sorted(GOOD))
def test_an_empty_file_a_folder_a_missing_file_and_one_that_is_no_text_are_refused(tmp_path: Path, kind: str):
    assert "no request that could be sent" in refusal(kind, written(tmp_path, b"\n \n")).message
    assert "cannot be read" in refusal(kind, str(tmp_path)).message
    assert "No such file" in refusal(kind, str(tmp_path / "none")).message
    assert "cannot be read" in refusal(kind, "\0").message
    bad = written(tmp_path, GOOD[kind].encode().replace(b"\n", b"\n\xff", 1) if kind != "sharegpt" else b"[\n\xff]")
    assert "line 2: found the byte 0xff, expected UTF-8 text" in refusal(kind, bad).message


def test_every_kind_of_file_is_tried_here():
    assert set(GOOD) == set(READERS)


def answered(ask: Callable[[], Any]) -> Any:
    """What it answers; None when it is refused with a hint. Any other error comes through."""
    try:
        return ask()
    except UsageError as error:
        if not error.hint:
            raise AssertionError(f"no hint: {error.message}") from error
    return None


def holds_or_is_refused(path: Path, kind: str, content: bytes) -> None:
    """Read it; what is read can be played, and what is refused is refused with a hint."""
    path.write_bytes(content)
    read = answered(lambda: source(kind, str(path)))
    if read is None:
        return
    assert read.num_sessions
    assert read.instants_s is None or list(read.instants_s) == sorted(read.instants_s)


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "data"


@pytest.mark.parametrize("kind", sorted(GOOD))
@settings(deadline=None)
@given(content=st.binary(max_size=200))
def test_arbitrary_bytes_are_read_or_refused_but_never_break_the_reader(fuzzed: Path, kind: str, content: bytes):
    holds_or_is_refused(fuzzed, kind, content)


@pytest.mark.parametrize("kind", sorted(GOOD))
@settings(deadline=None)
@given(
    position=st.integers(0, 400), cut=st.integers(0, 8), damage=st.binary(max_size=8) | st.sampled_from([b"9" * 5000])
)
def test_a_damaged_file_is_read_or_refused_but_never_breaks_the_reader(
    fuzzed: Path, kind: str, position: int, cut: int, damage: bytes
):
    content = GOOD[kind].encode()
    position %= len(content)
    holds_or_is_refused(fuzzed, kind, content[:position] + damage + content[position + cut :])


KEYS = st.sampled_from(
    [
        *("prompt", "messages", "output_tokens", "at_s", "timestamp", "turns", "user", "role", "content", "think_s"),
        *("system", "conversations", "from", "value", "input_length", "output_length", "hash_ids", "human", "gpt"),
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | KEYS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=12,
)


@pytest.mark.parametrize("kind", ["sharegpt", "mooncake", "jsonl", "conversations"])
@settings(deadline=None)
@given(rows=st.lists(st.dictionaries(KEYS, VALUES, max_size=6), min_size=1, max_size=3), as_list=st.booleans())
def test_any_json_is_read_or_refused_but_never_breaks_the_reader(fuzzed: Path, kind: str, rows: list, as_list: bool):
    text = json.dumps(rows) if as_list else "\n".join(map(json.dumps, rows))
    holds_or_is_refused(fuzzed, kind, text.encode())


@pytest.mark.parametrize("kind", ["sharegpt", "mooncake", "jsonl", "conversations"])
def test_json_nested_beyond_reason_is_refused(tmp_path: Path, kind: str):
    assert "cannot be read" in refusal(kind, written(tmp_path, "[" * 200_000)).message


@settings(deadline=None)
@given(content=st.binary(max_size=100))
def test_the_kind_of_arbitrary_bytes_is_found_or_refused(fuzzed: Path, content: bytes):
    fuzzed.write_bytes(content)
    assert answered(lambda: detect(str(fuzzed))) in {None, *READERS}


# --- the command line's spelling


@pytest.mark.parametrize(
    ("text", "workload"),
    [
        ("synthetic", Synthetic()),
        ("synthetic:", Synthetic()),
        (
            "synthetic:input=512,output=128",
            Synthetic(input=Lengths(kind="fixed", mean=512), output=Lengths(kind="fixed", mean=128)),
        ),
        (
            "synthetic:input=128-1024",
            Synthetic(input=Lengths(kind="uniform", mean=576, low=128, high=1024)),
        ),
        ("input=128", Synthetic(input=Lengths(kind="fixed", mean=128))),
        (
            "synthetic: input=normal(512,64), output=lognormal(256, 99.5)",
            Synthetic(
                input=Lengths(kind="normal", mean=512, sd=64), output=Lengths(kind="lognormal", mean=256, sd=99.5)
            ),
        ),
        ("synthetic:prefix=4x1024", Synthetic(prefix_groups=4, prefix_tokens=1024)),
        ("sharegpt:some/file.json", Dataset(kind="sharegpt", path="some/file.json")),
        ("mooncake:a:b", Dataset(kind="mooncake", path="a:b")),
        ("burstgpt:x", Dataset(kind="burstgpt", path="x")),
        ("azure:x", Dataset(kind="azure", path="x")),
        ("jsonl:x", Dataset(kind="jsonl", path="x")),
        ("conversations:x", Dataset(kind="conversations", path="x")),
    ],
)
def test_workloads_are_spelled_as_the_help_says(text: str, workload: Synthetic | Dataset):
    assert parse_workload(text) == workload


@pytest.mark.parametrize(
    ("text", "told", "hint"),
    [
        ("shargpt:f", "'shargpt:f' is neither a workload nor a file", "did you mean sharegpt?"),
        ("no/such/file", "neither a workload nor a file", "sharegpt:FILE"),
        ("", "neither a workload nor a file", "synthetic"),
        ("mooncake", "names no file", "mooncake:FILE"),
        ("mooncake:", "names no file", "mooncake:FILE"),
        ("synthetic:inputs=5", "'inputs=5' is no part", "did you mean input?"),
        ("synthetic:5", "'5' is no part", "input=512"),
        ("synthetic:input=5,input=6", "input is given twice", "once"),
        ("synthetic:input=much", "input=much is no distribution", "normal(512,64)"),
        ("synthetic:input=norml(5,6)", "input=norml(5,6) is no distribution", "did you mean normal?"),
        ("synthetic:input=0", "input: 0 is not from 1 to 1,048,576", "lengths are"),
        ("synthetic:input=" + "9" * 5_000, "is not from 1 to", "lengths are"),
        ("synthetic:input=90-10", "90 is above 10", "input=10-90"),
        ("synthetic:output=normal(0,5)", "the mean must be from 1", "lengths are"),
        ("synthetic:prefix=4", "prefix=4 is not GROUPSxTOKENS", "4x1024"),
        ("synthetic:prefix=0x9", "prefix: 0 is not from 1", "lengths are"),
    ],
)
def test_a_misspelled_workload_is_answered_with_what_was_given_and_what_is_possible(text: str, told: str, hint: str):
    with pytest.raises(UsageError) as caught:
        parse_workload(text)
    assert told in caught.value.message
    assert hint in str(caught.value.hint)


@pytest.mark.parametrize("content", ["", "hello", '{"a": 1}', "{", "a,b,c\n1,2,3\n", "\x1f\x8b\x08"])
def test_a_file_of_no_known_kind_is_answered_with_what_it_holds(tmp_path: Path, content: str):
    path = written(tmp_path, content)
    with pytest.raises(UsageError, match="expected") as caught:
        parse_workload(path)
    assert caught.value.message.startswith(path)
    assert caught.value.hint


def test_a_file_that_is_named_like_a_kind_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    written(tmp_path, GOOD["mooncake"], name="jsonl")
    monkeypatch.chdir(tmp_path)
    assert parse_workload("jsonl") == Dataset(kind="mooncake", path="jsonl")


@pytest.mark.parametrize(
    ("text", "concurrency", "rate", "arrival"),
    [
        ("closed", 8, None, Arrival(concurrency=8)),
        ("constant", None, 5.0, Arrival(kind="constant", rate_per_s=5.0)),
        ("poisson", 64, 5.0, Arrival(kind="poisson", rate_per_s=5.0, concurrency=64)),
        ("gamma:2.5", None, 5.0, Arrival(kind="gamma", rate_per_s=5.0, cv=2.5)),
        ("trace", None, None, Arrival(kind="trace")),
        ("trace", None, 3.0, Arrival(kind="trace", rate_per_s=3.0)),
        ("ramp:1-50", None, None, Arrival(kind="ramp", start_rate_per_s=1.0, rate_per_s=50.0)),
        ("ramp:0.5 - 2", 9, None, Arrival(kind="ramp", start_rate_per_s=0.5, rate_per_s=2.0, concurrency=9)),
    ],
)
def test_arrival_laws_are_spelled_as_the_help_says(
    text: str, concurrency: int | None, rate: float | None, arrival: Arrival
):
    assert parse_arrival(text, concurrency=concurrency, rate=rate) == arrival


@pytest.mark.parametrize(
    ("text", "concurrency", "rate", "told", "hint"),
    [
        ("poison", None, 1.0, "'poison' is no arrival law", "did you mean poisson?"),
        ("", None, 1.0, "'' is no arrival law", "`closed`"),
        ("closed", None, None, "wants a concurrency", "--concurrency"),
        ("closed", 4, 2.0, "takes no rate, and --rate 2 was given", "--arrival poisson --rate 2"),
        ("closed", 0, None, "concurrency", "arrival is"),
        ("poisson", None, None, "poisson arrival wants a rate", "--rate"),
        ("poisson", None, -1.0, "rate_per_s", "arrival is"),
        ("poisson:3", None, 1.0, "poisson takes nothing after the colon", "arrival is"),
        ("gamma", None, 1.0, "'gamma' is not spelled `gamma:CV`", "arrival is"),
        ("gamma:0", None, 1.0, "cv", "arrival is"),
        ("ramp:5", None, None, "is not spelled `ramp:FROM-TO`", "arrival is"),
        ("ramp:0-5", None, None, "start_rate_per_s", "arrival is"),
        ("ramp:1-5", None, 3.0, "says its own rates, and --rate 3 was given too", "leave --rate out"),
    ],
)
def test_a_misspelled_arrival_law_is_answered_with_what_was_given_and_what_is_possible(
    text: str, concurrency: int | None, rate: float | None, told: str, hint: str
):
    with pytest.raises(UsageError) as caught:
        parse_arrival(text, concurrency=concurrency, rate=rate)
    assert told in caught.value.message
    assert hint in str(caught.value.hint)


@given(text=st.text(max_size=40), part=st.sampled_from(["", "synthetic:", "synthetic:input=", "ramp:", "gamma:"]))
def test_any_spelling_is_understood_or_refused(text: str, part: str):
    answered(lambda: parse_workload(part + text))
    answered(lambda: parse_arrival(part + text, concurrency=None, rate=None))
