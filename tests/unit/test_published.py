"""Published measurements as data, and the arithmetic that puts estimates beside them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest
from benchmarks import estimates_against_published

from assay import models
from assay.errors import UsageError
from assay.probes import devices
from assay.probes.published import load_published, read_tables
from assay.records.estimate import Layout, OperatingPoint
from assay.records.published import HeldTable, PublishedPoint, PublishedTable
from assay.roofline import held_out, published, published_times

TABLES = load_published()


def table(**changes: object) -> PublishedTable:
    fields: dict[str, object] = {
        "id": "t",
        "title": "t",
        "source": "s",
        "date": "2026-01",
        "model": "m",
        "device": "d",
        "count": 2,
        "layout": Layout(tp=2),
        "engine": "e",
        "quantity": "served",
        "repeats": "one run",
        "sustained": "steady",
        "points": [PublishedPoint(sequences=4, input_tokens=100, output_tokens=600, value=10)],
    }
    return PublishedTable.model_validate(fields | changes)


def test_at_least_five_sources_besides_the_founding_one_are_held_with_address_date_and_conditions() -> None:
    files = sorted(Path(published.__file__).parent.parent.joinpath("data", "published").glob("*.toml"))
    assert len(files) >= 6
    for held in TABLES.values():
        assert held.source
        assert held.date >= "2023"
        assert held.engine
        assert held.repeats
        assert held.not_stated, held.id


def test_gpus_and_models_are_more_than_the_founding_ones() -> None:
    assert len({held.device for held in TABLES.values()}) >= 6
    assert len({held.model for held in TABLES.values()}) >= 8


def test_a_row_of_the_wrong_length_is_refused_with_its_table_and_values(tmp_path: Path) -> None:
    file = tmp_path / "broken.toml"
    file.write_text('[[tables]]\nid = "x"\ncolumns = ["sequences", "value"]\nrows = [[1, 2, 3]]\n')
    with pytest.raises(UsageError, match=r"x: row \[1, 2, 3\] has 3 values for 2 columns"):
        read_tables(file)


def test_a_table_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    source = Path(published.__file__).parent.parent / "data" / "published" / "rocm-mi300x.toml"
    copy = tmp_path / "again.toml"
    copy.write_text(source.read_text())
    with pytest.raises(UsageError, match="is there already"):
        load_published(copy)


def test_decode_alone_has_no_prompts_and_stands_at_three_contexts() -> None:
    work = published.work_of(table(quantity="decode"), PublishedPoint(input_tokens=0, output_tokens=600, value=1), 4)
    assert work.prompts == []
    assert [point.context_tokens for point, _ in work.decode] == [100, 300, 500]
    assert sum(weight for _, weight in work.decode) == 600
    assert work.tokens == 2400


def test_a_fixed_batch_computes_its_prompts_together_and_a_closed_loop_as_requests_end() -> None:
    point = PublishedPoint(sequences=64, input_tokens=128, output_tokens=128, value=1)
    together = published.work_of(table(quantity="batch", prefill_step_tokens=131072), point, 64).prompts
    assert together == [(OperatingPoint(phase="prefill", sequences=64, context_tokens=0, new_tokens=128), 1.0)]
    apart = published.work_of(table(quantity="served"), point, 64).prompts
    assert apart == [(OperatingPoint(phase="prefill", sequences=1, context_tokens=0, new_tokens=128), 64.0)]


def test_a_prompt_longer_than_a_step_is_computed_in_chunks_that_see_what_came_before() -> None:
    steps = published.prompt_steps(3, 5000, 2048, 3)
    assert [(step.context_tokens, step.new_tokens, weight) for step, weight in steps] == [
        (0, 2048, 3.0),
        (2048, 2048, 3.0),
        (4096, 904, 3.0),
    ]


def test_rates_per_device_and_times_become_rates_of_the_box() -> None:
    rate = PublishedPoint(sequences=4, input_tokens=100, output_tokens=50, value=10)
    assert published.measured_rate(table(per_device=True), rate, 4) == 20
    assert published.measured_rate(table(quantity="batch_latency"), rate, 4) == 20
    prompts = rate.model_copy(update={"output_tokens": 0})
    assert published.measured_rate(table(quantity="prefill_latency"), prompts, 4) == 40


def met(looped: PublishedTable, point: PublishedPoint, running: int) -> float:
    return sum(step.sequences * weight for step, weight in published.work_of(looped, point, running).prompts)


def test_a_tpot_meets_every_prompt_but_those_of_its_own_step_and_counts_its_own_tokens() -> None:
    point = PublishedPoint(sequences=64, input_tokens=512, output_tokens=128, value=0.020)
    looped = table(quantity="tpot", prefill_step_tokens=8192, rounds=True)
    assert published.measured_rate(looped, point, 64) == pytest.approx(3200)
    # 16 prompts fit into a step: of 64, the 48 others are met, each once while a request generates its answer.
    assert met(looped, point, 64) == pytest.approx(48)
    assert published.work_of(looped, point, 8).prompts == []
    assert met(table(quantity="tpot"), point, 64) == pytest.approx(63)


def test_prompts_of_one_length_come_in_rounds_as_many_as_a_step_takes() -> None:
    point = PublishedPoint(sequences=256, input_tokens=512, output_tokens=128, value=1)
    spread = published.work_of(table(quantity="served"), point, 256).prompts
    rounds = published.work_of(table(quantity="served", rounds=True), point, 256).prompts
    assert [(step.sequences, weight) for step, weight in spread] == [(2, 128.0)]
    assert [(step.sequences, weight) for step, weight in rounds] == [(16, 16.0)]


@pytest.fixture(scope="module")
def held() -> dict[str, HeldTable]:
    return {name: estimates_against_published.held(each) for name, each in TABLES.items()}


def test_no_measurement_lies_above_its_ceiling(held: dict[str, HeldTable]) -> None:
    above = [(name, point.point) for name, each in held.items() for point in each.points if point.is_above_ceiling]
    assert above == []


def test_two_points_of_a_table_predict_its_others_within_twenty_percent_in_the_median(
    held: dict[str, HeldTable],
) -> None:
    errors = [abs(out.error) for each in held.values() for out in each.two_points]
    assert median(errors) <= 0.20
    medians = [median(abs(out.error) for out in each.two_points) for each in held.values() if each.two_points]
    assert median(medians) <= 0.20


def test_leave_one_out_predicts_within_twenty_percent_in_the_median(held: dict[str, HeldTable]) -> None:
    assert median(abs(out.error) for each in held.values() for out in each.left_out) <= 0.20


def test_our_own_times_of_a_token_come_out_within_twenty_percent(held: dict[str, HeldTable]) -> None:
    """The constants were set with these in view: that they still come out checks the code, not the model."""
    own = [each for each in held.values() if each.table.own and each.table.quantity == "tpot"]
    points = [point for each in own for point in each.points]
    assert len(points) >= 9
    assert all(abs(point.error) <= 0.20 for point in points)
    assert median(abs(point.error) for point in points) <= 0.10
    assert all(point.is_inside for each in own for point in each.points)


def test_operating_points_are_ranked_right_without_calibration(held: dict[str, HeldTable]) -> None:
    orders = [held_out.order(each.points) for each in held.values()]
    assert sum(right for right, _ in orders) / sum(pairs for _, pairs in orders) >= 0.95


def test_the_expected_range_holds_most_measurements_before_any_calibration(held: dict[str, HeldTable]) -> None:
    points = [point for each in held.values() for point in each.points]
    assert sum(point.is_inside for point in points) / len(points) >= 0.75


def test_the_two_points_are_chosen_without_looking_at_what_was_measured(held: dict[str, HeldTable]) -> None:
    each = held["glm-5-rtx-pro-6000-cutlass"]
    blind = [point.model_copy(update={"measured": 1.0}) for point in each.points]
    assert held_out.extremes(blind) == each.calibrated_on


def test_a_ceiling_with_prompts_in_the_steps_of_decode_is_no_lower_than_with_prompts_apart(
    held: dict[str, HeldTable],
) -> None:
    """An engine may compute prompts beside decode: the ceiling of a closed loop allows for that."""
    shape, box = models.load("llama-3.1-8b"), devices.box("h100-sxm")
    mixed = table(quantity="served", device="h100-sxm", count=1, layout=Layout(), mixed_steps=True)
    point = PublishedPoint(sequences=64, input_tokens=500, output_tokens=200, value=100)
    _, times = estimates_against_published.held_point(mixed, point, shape, box, None)
    assert published_times.floor_s(times, box, mixed=True) <= published_times.floor_s(times, box, mixed=False)
    riding, apart = (published_times.expected_time_s(one, box) for one in (times, replace(times, riding=[])))
    assert riding.mid <= apart.mid
    assert published_times.components_of(times).time_s == pytest.approx(riding.mid)


def test_the_page_is_what_the_code_predicts_today(held: dict[str, HeldTable]) -> None:
    written = estimates_against_published.PAGE.read_text(encoding="utf-8")
    again = "run: python benchmarks/estimates_against_published.py --write, and read what changed"
    assert estimates_against_published.summary(list(held.values())) in written, again
    for each in held.values():
        assert estimates_against_published.section(each) in written, again
