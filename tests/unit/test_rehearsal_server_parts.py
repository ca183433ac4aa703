"""The simulated server's parts: step times, noise, the batch, flags, faults' texts."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from assay.errors import UsageError
from assay.models import load
from assay.probes.devices import box
from assay.records.estimate import Layout, OperatingPoint
from assay.rehearsal import answers
from assay.rehearsal.batch import Batch, Limits, Sequence
from assay.rehearsal.flags import Refused, known_flags, parser, read
from assay.rehearsal.noise import Noise
from assay.rehearsal.step_times import StepTimes
from assay.rehearsal.world_file import NoiseSpec, Truth, WorldFile, read_world
from assay.roofline import step

SHAPE, BOX, TP8 = load("glm-5-nvfp4"), box("8xRTX-PRO-6000"), Layout(tp=8)
SILENT = NoiseSpec(run_sd=0, step_sd=0)


def times(*truths: Truth) -> StepTimes:
    return StepTimes(SHAPE, BOX, TP8, truths)


def batch(limits: Limits | None = None, spec: NoiseSpec = SILENT, seed: str = "1:0") -> Batch:
    return Batch(times(), Noise(spec, seed), limits or Limits(running=256, chunk_tokens=8192, cache_tokens=300_000))


def write(folder: Path, text: str) -> str:
    path = folder / "world.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("sequences", [1, 64])
def test_a_step_of_decode_takes_what_the_roofline_says(sequences: int) -> None:
    point = OperatingPoint(phase="decode", sequences=sequences, context_tokens=1024)

    assert times().decode_s(sequences, 1024) == pytest.approx(step.estimate(SHAPE, BOX, TP8, point).time_s.mid)


def test_between_two_contexts_a_step_takes_a_time_between_theirs() -> None:
    found = times()

    low, middle, high = (found.decode_s(64, context) for context in (1024, 1536, 2048))

    assert middle == pytest.approx((low + high) / 2)


def test_a_prompt_costs_in_proportion_to_its_length_once_it_is_long() -> None:
    found = times()

    assert found.prefill_s(8192) / found.prefill_s(4096) == pytest.approx(2, rel=0.15)


def test_a_truth_on_an_operation_changes_the_step_by_that_operations_share() -> None:
    point = OperatingPoint(phase="decode", sequences=64, context_tokens=1024)
    found = step.estimate(SHAPE, BOX, TP8, point)
    reduces = sum(op.time_s.mid for op in found.ops if op.collective == "all_reduce")

    faster = times(Truth(ops=["all_reduce"], factor=0.85, max_message_bytes=2**20)).decode_s(64, 1024)

    assert found.time_s.mid - faster == pytest.approx(0.15 * reduces)


def test_a_truth_on_small_messages_does_nothing_to_large_ones() -> None:
    changed = times(Truth(ops=["all_reduce"], factor=0.5, max_message_bytes=2**20))

    assert changed.decode_s(128, 1024) == pytest.approx(times().decode_s(128, 1024))


def test_a_gain_holds_in_its_regime_and_nowhere_else() -> None:
    flips = times(Truth(phase="decode", sequences=(1, 2), gain=0.1), Truth(sequences=(3, 999), gain=-0.2))

    assert times().decode_s(1, 0) / flips.decode_s(1, 0) == pytest.approx(1.1)
    assert times().decode_s(64, 0) / flips.decode_s(64, 0) == pytest.approx(0.8)


def test_the_same_seed_gives_the_same_noise_and_another_seed_another() -> None:
    spec = NoiseSpec(run_sd=0.01, step_sd=0.01)

    one, again, other = ([noise.slowdown(0.05, 0.05 * i) for i in range(50)] for noise in
                         (Noise(spec, "1:r0001"), Noise(spec, "1:r0001"), Noise(spec, "1:r0002")))  # fmt: skip

    assert one == again
    assert one != other


def test_launches_scatter_as_the_world_says() -> None:
    spec = NoiseSpec(run_sd=0.02, step_sd=0)

    logs = [math.log(Noise(spec, f"1:{number}").slowdown(0.05, 0)) for number in range(2000)]

    # The standard error of a standard deviation from n draws is sd / sqrt(2n): four of them here.
    assert np.std(logs) == pytest.approx(0.02, abs=4 * 0.02 / math.sqrt(4000))


def test_noise_within_a_launch_keeps_its_spread_and_forgets_over_the_correlation_time() -> None:
    noise = Noise(NoiseSpec(run_sd=0, step_sd=0.02, correlation_s=1.0), "1:0")

    logs = np.log([noise.slowdown(0.1, 0.1 * i) for i in range(20_000)])
    autocorrelation = np.corrcoef(logs[:-10], logs[10:])[0, 1]

    assert np.std(logs) == pytest.approx(0.02, rel=0.1)
    assert autocorrelation == pytest.approx(math.exp(-1), abs=0.08)


def test_drift_turns_around_at_its_limit() -> None:
    noise = Noise(NoiseSpec(run_sd=0, step_sd=0, drift_per_hour=0.02, drift_limit=0.05), "1:0")

    hours = [noise.drift(3600 * hour) for hour in (0, 1, 2.5, 5, 7.5, 10)]

    assert hours == pytest.approx([0, 0.02, 0.05, 0, -0.05, 0])


def test_a_hot_machine_is_slower_and_a_rested_one_is_not() -> None:
    noise = Noise(NoiseSpec(run_sd=0, step_sd=0, throttle=0.1, heating_s=100), "1:0")

    cold = noise.slowdown(0.1, 0)
    hot = [noise.slowdown(0.1, 0.1 * i) for i in range(10_000)][-1]
    noise.rest(1000)

    assert hot / cold == pytest.approx(1 / 0.9, rel=0.01)
    assert noise.slowdown(0.1, 0) == pytest.approx(cold, rel=0.01)


def test_64_sequences_are_served_together_in_the_time_that_the_roofline_gives_64() -> None:
    one, many = batch(), batch()
    one.submit(Sequence(prompt_tokens=16, output_tokens=101))
    for _ in range(64):
        many.submit(Sequence(prompt_tokens=16, output_tokens=101))

    one.advance(math.inf)
    many.advance(math.inf)
    ratio = (many.now_s - many.times.prefill_s(1024)) / (one.now_s - one.times.prefill_s(16))

    assert many.counters.generated_tokens == 64 * 101
    assert ratio == pytest.approx(many.times.decode_s(64, 66) / one.times.decode_s(1, 66), rel=0.01)


def test_a_pool_too_small_makes_requests_wait_and_sends_the_latest_back() -> None:
    small = batch(Limits(running=256, chunk_tokens=8192, cache_tokens=400))
    sequences = [Sequence(prompt_tokens=100, output_tokens=120) for _ in range(4)]
    for sequence in sequences:
        small.submit(sequence)

    finished = small.advance(math.inf)

    assert small.counters.preemptions > 0
    assert [one for one in sequences if one not in finished] == []
    assert [small.made(one) for one in sequences] == [120] * 4
    assert small.used_tokens == 0


def test_no_more_sequences_run_than_the_limit_allows() -> None:
    limited = batch(Limits(running=3, chunk_tokens=64, cache_tokens=10_000))
    for _ in range(10):
        limited.submit(Sequence(prompt_tokens=50, output_tokens=20))

    most, end_s = 0, 0.0
    while limited.has_work:
        limited.advance(end_s)
        most = max(most, limited.running)
        end_s = limited.next_end_s() or end_s

    assert most == 3
    assert limited.counters.generated_tokens == 200


def test_a_client_that_goes_away_frees_its_cache() -> None:
    found = batch()
    leaving, staying = (Sequence(prompt_tokens=10, output_tokens=1000) for _ in range(2))
    found.submit(leaving)
    found.submit(staying)
    found.advance(1.0)

    found.cancel(leaving)
    found.advance(2.0)

    assert found.running == 1
    assert found.used_tokens == staying.prompt_tokens + found.made(staying)


def test_greedy_answers_depend_on_the_prompt_alone_and_change_for_a_share_of_prompts() -> None:
    hashes = [answers.hash_of([number, number + 1]) for number in range(4000)]

    changed = sum(answers.is_changed(one, 0.3) for one in hashes)

    assert answers.hash_of([1, 2]) == answers.hash_of([1, 2]) != answers.hash_of([2, 1])
    assert answers.first_token(hashes[0], otherwise=False) != answers.first_token(hashes[0], otherwise=True)
    assert changed / 4000 == pytest.approx(0.3, abs=4 * math.sqrt(0.21 / 4000))


def test_the_pieces_of_an_answer_make_its_whole_text() -> None:
    whole = answers.text_of(7, 0, 3000)

    assert "".join(answers.text_of(7, begin, begin + 100) for begin in range(0, 3000, 100)) == whole
    assert len(whole.split()) == 3000


def test_the_help_lists_the_worlds_flags_beside_the_built_in_ones() -> None:
    world = WorldFile.model_validate({"flags": [{"name": "--enable-x", "help": "Gains 10% in theory."}]})

    text = parser(known_flags(world)).format_help()

    assert "--enable-x" in text
    assert "Gains 10% in theory." in text
    assert "--tp-size N" in text


def test_the_truth_of_a_value_holds_for_that_value_alone(tmp_path: Path) -> None:
    world = write(tmp_path, '[[flags]]\nname = "--ep-size"\n[[flags.truth]]\nvalue = 8\nfault = { kind = "crash" }\n')

    assert not list(read(["--world", world]).faults("crash"))
    assert not list(read(["--world", world, "--ep-size", "4"]).faults("crash"))
    assert list(read(["--world", world, "--ep-size", "8"]).faults("crash"))


def test_a_flag_that_nobody_knows_is_refused() -> None:
    with pytest.raises(Refused, match="unrecognized arguments: --warp-speed"):
        read(["--warp-speed"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("flags = 3", "flags"),
        ('[[flags]]\nname = "no-dashes"\n', "name"),
        ("[noise]\nrun_sd = -1\n", "noise.run_sd"),
        ("[noise]\nrandomness = 1\n", "randomness"),
        ("not toml", "cannot be read"),
    ],
)
def test_a_broken_world_is_refused_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        read_world(Path(write(tmp_path, text)))
