"""Seeded requests of exact lengths that share no beginnings."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from itertools import pairwise

import pytest

from assay.errors import MeasurementError
from assay.load.workload import RequestSource, corpus, longest_shared_prefix, workload_hash
from assay.records.spec import Workload

WORKLOAD = Workload(input_tokens=(24, 64), output_tokens=(16, 48))


def words(text: str) -> list[int]:
    return [zlib.crc32(word.encode()) for word in re.findall(r"\w+|[^\w\s]", text)]


def requests(seed: int, number: int, workload: Workload = WORKLOAD):
    source = RequestSource(workload, seed, words)
    return [source.request(index) for index in range(number)]


def test_lengths_are_exact_and_cover_the_declared_ranges():
    made = requests(1, 2_000)
    assert {len(request.prompt) for request in made} == set(range(24, 65))
    assert {request.output_tokens for request in made} == set(range(16, 49))


def test_lengths_are_uniform_in_their_range():
    counts = Counter(request.output_tokens for request in requests(5, 3_300))
    chi_square = sum((count - 100) ** 2 / 100 for count in counts.values())
    assert chi_square < 62.5  # 99.9% point with 32 degrees of freedom


def test_no_two_prompts_of_a_run_or_of_two_seeds_share_more_than_a_handful_of_tokens():
    prompts = [request.prompt for seed in range(1, 11) for request in requests(seed, 1_000)]
    assert len({tuple(prompt) for prompt in prompts}) == 10_000
    assert longest_shared_prefix(prompts) <= 5


def test_request_n_of_a_seed_is_the_same_in_whatever_order_requests_are_made():
    forward = requests(3, 50)
    source = RequestSource(WORKLOAD, 3, words)
    assert [source.request(index) for index in reversed(range(50))] == forward[::-1]


def test_the_corpus_is_tokenized_once_however_many_requests_are_made():
    calls: list[str] = []
    source = RequestSource(WORKLOAD, 1, lambda text: calls.append(text) or words(text))
    for index in range(100):
        source.request(index)
    assert len(calls) == 1


def test_prompts_longer_than_the_corpus_and_shorter_than_their_opening_have_their_length():
    long = requests(1, 3, Workload(input_tokens=(9_000, 9_000)))
    short = requests(1, 3, Workload(input_tokens=(1, 1)))
    assert {len(request.prompt) for request in long} == {9_000}
    assert {len(request.prompt) for request in short} == {1}


def test_most_of_a_prompt_is_running_text_of_the_corpus():
    source = RequestSource(WORKLOAD, 1, words)
    pairs = {tuple(words(line)[at : at + 2]) for line in corpus() for at in range(len(words(line)) - 1)}
    prompt = source.request(0).prompt
    running = sum((a, b) in pairs for a, b in pairwise(prompt))
    assert running > 0.6 * len(prompt)


def test_the_corpus_is_long_and_varied_enough_to_be_cut_into_prompts():
    tokens = [token for line in corpus() for token in words(line)]
    assert len(tokens) > 1_500
    assert len(set(tokens)) > 700
    assert len(set(corpus())) == len(corpus())


def test_the_hash_changes_with_any_token_length_or_index():
    made = requests(1, 5)
    assert workload_hash(made) == workload_hash(requests(1, 5))
    assert len({workload_hash(made), workload_hash(made[:4]), workload_hash(requests(2, 5))}) == 3


def test_a_tokenizer_with_too_few_tokens_is_refused_with_the_numbers():
    with pytest.raises(MeasurementError, match="3 distinct"):
        RequestSource(WORKLOAD, 1, lambda text: [len(word) % 3 for word in text.split()])


@pytest.mark.parametrize(
    ("prompts", "shared"),
    [([], 0), ([[1, 2]], 0), ([[1, 2], [1, 2]], 2), ([[1, 2, 3], [9], [1, 2, 4]], 2), ([[1], [1, 5]], 1)],
)
def test_the_longest_shared_prefix_of_any_two_prompts_is_found(prompts: list[list[int]], shared: int):
    assert longest_shared_prefix(prompts) == shared
