"""From the catalogue to hypotheses: what applies, what is blocked, what changes nothing, in which order."""

from __future__ import annotations

import pytest

from assay.catalogue.loader import builtin_folder, load, null_folder
from assay.errors import UsageError
from assay.plan.hypotheses import Plan, build
from assay.records.base import Flags
from assay.records.hypothesis import Hypothesis, Optimization
from assay.records.machine import EngineBuild, FlagInfo, Machine, ModelFacts
from assay.records.spec import CampaignSpec, Policy, Target, Workload

MACHINE = Machine(
    cpu_model="a CPU",
    physical_cores=4,
    logical_cores=8,
    usable_cores=2,
    isa=["avx2"],
    memory_bytes=2**33,
    numa_nodes=1,
    kernel="6.1",
    os="Debian",
    python="3.11",
    hypervisor=True,
)
MODEL = ModelFacts(path="m.gguf", sha256="0" * 64, size_bytes=10**8, architecture="llama", quantization="Q4_1")
BUILD = EngineBuild(
    engine="llamacpp",
    argv=["llama-server"],
    version="b1",
    source="PATH",
    flags=[
        FlagInfo(names=["-t", "--threads"], value="N"),
        FlagInfo(names=["-np", "--parallel"], value="N"),
        FlagInfo(names=["--load-mode"], value="MODE"),
        FlagInfo(names=["--repack", "-nr", "--no-repack"], value=None),
        FlagInfo(names=["--draft-max"], value="N", removed=True),
    ],
)


def optimization(name: str = "try-it", **changes: object) -> Optimization:
    fields: dict[str, object] = {
        "id": name,
        "title": name,
        "tier": 1,
        "engine": "llamacpp",
        "flags": {"--threads": 2},
        "mechanism": "m",
        "predicted": (0.0, 0.1),
        "numerics": "exact",
        "risk": "r",
    }
    return Optimization.model_validate({**fields, **changes})


def check_flags(flags: Flags) -> str | None:
    for name in flags:
        info = BUILD.flag(name)
        if info is None or info.removed:
            return f"b1 has no flag {name}"
    return None


def plan_of(
    *entries: Optimization | list[Optimization],
    baseline: Flags | None = None,
    only: tuple[str, ...] = (),
    streams: int = 8,
) -> Plan:
    spec = CampaignSpec(
        target=Target(flags=baseline or {}), policy=Policy(only=list(only)), workload=Workload(concurrency=streams)
    )
    variants = [entry if isinstance(entry, list) else [entry] for entry in entries]
    return build(variants, spec, MACHINE, BUILD, MODEL, check_flags)


def one(plan: Plan) -> Hypothesis:
    assert not plan.passed_over
    assert len(plan.hypotheses) == 1
    return plan.hypotheses[0]


def test_a_value_that_begins_with_an_equals_sign_is_computed_from_the_facts() -> None:
    flags: Flags = {"--threads": "= 2 * machine.usable_cores", "--parallel": "= workload.concurrency // 2"}

    assert one(plan_of(optimization(flags=flags))).optimization.flags == {"--threads": 4, "--parallel": 4}


def test_an_entry_whose_condition_is_false_is_left_out_with_the_values_that_decided() -> None:
    plan = plan_of(optimization(applies_when="machine.numa_nodes > 1"))

    assert plan.hypotheses == []
    assert plan.passed_over == {"try-it": "machine.numa_nodes > 1 is false: machine.numa_nodes = 1"}


@pytest.mark.parametrize(
    "changes", [{"applies_when": "model.num_experts > 0"}, {"flags": {"--threads": "= model.num_experts"}}]
)
def test_an_entry_that_hangs_on_an_unknown_fact_is_left_out_and_says_so(changes: dict[str, object]) -> None:
    (reason,) = plan_of(optimization(**changes)).passed_over.values()

    assert reason.startswith("cannot be decided")
    assert "unknown" in reason


def test_a_flag_that_the_build_lost_blocks_the_hypothesis_before_anything_is_launched() -> None:
    found = one(plan_of(optimization(flags={"--draft-max": 16})))

    assert (found.status, found.blocked_reason) == ("blocked", "b1 has no flag --draft-max")


def test_the_first_spelling_that_the_build_has_is_taken() -> None:
    old, new = optimization(flags={"--mlock": True}), optimization(flags={"--load-mode": "mlock"})

    found = one(plan_of([old, new]))

    assert (found.status, found.optimization.flags) == ("planned", {"--load-mode": "mlock"})


def test_when_the_build_has_no_spelling_the_reason_is_that_of_the_preferred_one() -> None:
    found = one(plan_of([optimization(flags={"--mlock": True}), optimization(flags={"--lock": True})]))

    assert found.blocked_reason == "b1 has no flag --mlock"


@pytest.mark.parametrize(
    ("baseline", "flags"),
    [
        ({"--threads": 2}, {"--threads": 2}),
        ({"-t": 2}, {"--threads": 2}),
        ({"--threads": "2"}, {"--threads": 2}),
        ({"--no-repack": True}, {"--repack": False}),
        ({"-nr": True}, {"--repack": False}),
    ],
)
def test_what_the_baseline_has_already_is_no_candidate_however_it_is_spelled(baseline: Flags, flags: Flags) -> None:
    assert plan_of(optimization(flags=flags), baseline=baseline).passed_over == {
        "try-it": "the baseline has it already"
    }


def test_a_candidate_takes_the_baselines_spelling_so_that_one_value_is_left() -> None:
    found = one(plan_of(optimization(flags={"--parallel": 8}), baseline={"-np": 1}))

    assert found.optimization.flags == {"-np": 8}


def test_the_other_side_of_a_switch_leaves_the_baseline_when_the_candidate_turns_it() -> None:
    found = one(plan_of(optimization(flags={"--repack": True}), baseline={"--no-repack": True}))

    assert (found.optimization.flags, found.optimization.remove_flags) == ({"--repack": True}, ["--no-repack"])


@pytest.mark.parametrize(
    ("baseline", "holds"), [({"-t": 1}, True), ({"--threads": "1"}, True), ({"--threads": 3}, False), ({}, False)]
)
def test_conditions_see_the_baselines_flags_under_any_spelling(baseline: Flags, holds: bool) -> None:
    asks = optimization(applies_when='flag("--threads", 9) < 2', flags={"--parallel": 2})

    assert bool(plan_of(asks, baseline=baseline).hypotheses) is holds


def test_conditions_see_what_the_build_has() -> None:
    asks = 'build.has("--repack") and not has("--draft-max") and target.flags["--threads"] == None'

    assert one(plan_of(optimization(applies_when=asks)))


def test_tiers_come_first_then_expected_gain_and_controls_after_the_others() -> None:
    plan = plan_of(
        optimization("artifact", tier=2, predicted=(0.5, 0.9)),
        optimization("control", expectation="control: should be worse", predicted=(-0.6, -0.2)),
        optimization("known", expectation="known to do nothing", predicted=(0.5, 0.5)),
        optimization("small", predicted=(0.0, 0.02)),
        optimization("large", predicted=(0.0, 0.5)),
        optimization("null", expectation="null: the default, spelled out", predicted=(0.0, 0.1)),
    )

    assert [h.id for h in plan.hypotheses] == ["large", "null", "small", "known", "control", "artifact"]
    assert [h.number for h in plan.hypotheses] == [1, 2, 3, 4, 5, 6]
    assert plan.hypotheses[0].document == "improvements/01-large.md"
    assert [h.priority for h in plan.hypotheses] == ["high", "medium", "low", "high", "low", "high"]


def test_only_the_named_entries_are_taken() -> None:
    assert [h.id for h in plan_of(optimization("a"), optimization("b"), only=("b",)).hypotheses] == ["b"]


def test_a_name_that_is_not_in_the_catalogue_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(UsageError) as caught:
        plan_of(optimization("parallel-slots"), only=("paralel-slots",))

    assert "'paralel-slots'" in caught.value.message
    assert caught.value.hint == "did you mean: parallel-slots"


def test_a_condition_about_something_that_does_not_exist_names_its_entry_and_the_column() -> None:
    with pytest.raises(UsageError) as caught:
        plan_of(optimization(applies_when="machine.socket_count > 1"))

    assert "try-it" in caught.value.message
    assert "column 1" in caught.value.message
    assert "usable_cores" in str(caught.value.hint)


@pytest.mark.parametrize("baseline", [{}, {"--parallel": 1, "--ctx-size": 4096}, {"-np": "4", "--threads": 1}])
@pytest.mark.parametrize("streams", [1, 8, 64])
def test_every_shipped_condition_and_value_can_be_decided_on_a_plain_machine(baseline: Flags, streams: int) -> None:
    entries = [*load([builtin_folder()], "llamacpp"), *load([null_folder()], "llamacpp")]

    plan = plan_of(*entries, baseline=baseline, streams=streams)

    assert len(plan.hypotheses) + len(plan.passed_over) == len(entries)
    values = [value for h in plan.hypotheses for value in h.optimization.flags.values()]
    assert not [value for value in values if isinstance(value, str) and value.startswith("=")]


def test_each_variant_keeps_its_own_condition() -> None:
    many = optimization(flags={"--threads": 3}, applies_when="workload.concurrency > 16")
    few = optimization(flags={"--parallel": 3}, applies_when="workload.concurrency <= 16")

    assert one(plan_of([many, few], streams=32)).optimization.flags == {"--threads": 3}
    assert one(plan_of([many, few], streams=8)).optimization.flags == {"--parallel": 3}
    found = plan_of([many, few], streams=8).reasoning.entries["try-it"]
    assert [condition.text for condition in found.conditions] == ["workload.concurrency <= 16"]


def test_where_no_variant_applies_the_first_ones_condition_is_told() -> None:
    never = [optimization(applies_when=f"machine.numa_nodes > {number}") for number in (1, 2)]

    assert plan_of(never).passed_over == {"try-it": "machine.numa_nodes > 1 is false: machine.numa_nodes = 1"}


@pytest.mark.parametrize(
    ("engine", "baseline", "flags"),
    [
        ("vllm", {"--kv-cache-dtype": "fp8"}, {"--kv-cache-dtype": "fp8_e4m3"}),
        ("vllm", {"--attention-backend": "flashinfer"}, {"--attention-backend": "FLASHINFER"}),
        ("vllm", {"--attention-config.backend": "flashinfer"}, {"--attention-backend": "FLASHINFER"}),
        ("vllm", {"--compilation-config": '{"a": {"b": true}, "c": 1}'}, {"--compilation-config.a.b": True}),
        ("vllm", {"--max-num-batched-tokens": "16K"}, {"--max-num-batched-tokens": 16384}),
        ("vllm", {"--speculative-config": '{"method":"mtp"}'}, {"--speculative-config": '{"method": "mtp"}'}),
        ("sglang", {"--kv-cache-dtype": "bf16"}, {"--kv-cache-dtype": "bfloat16"}),
        ("sglang", {"--mem-fraction-static": "0.920"}, {"--mem-fraction-static": 0.92}),
        ("llamacpp", {"--flash-attn": "1"}, {"--flash-attn": "on"}),
    ],
)
def test_a_setting_that_the_baseline_has_in_other_words_is_no_candidate(
    engine: str, baseline: Flags, flags: Flags
) -> None:
    build_of = BUILD.model_copy(update={"engine": engine, "flags": []})
    spec = CampaignSpec(target=Target(flags=baseline))

    plan = build([[optimization(flags=flags)]], spec, MACHINE, build_of, MODEL, lambda _: None)

    assert plan.passed_over == {"try-it": "the baseline has it already"}


@pytest.mark.parametrize(
    ("engine", "baseline"),
    [("sglang", {"--kv-cache-dtype": "fp8_e5m2"}), ("sglang", {"--kv-cache-dtype": "FP8_E4M3"}), ("vllm", {})],
)
def test_a_setting_that_only_looks_alike_is_one(engine: str, baseline: Flags) -> None:
    build_of = BUILD.model_copy(update={"engine": engine, "flags": []})
    spec = CampaignSpec(target=Target(flags=baseline))
    wanted = optimization(flags={"--kv-cache-dtype": "fp8_e4m3"})

    assert not build([[wanted]], spec, MACHINE, build_of, MODEL, lambda _: None).passed_over
