"""The tables of docs/gpu.md on two GPUs, from the record: `python -m benchmarks.gpu.two_gpu_tables CAMPAIGN CEILINGS`.

CAMPAIGN is a campaign's folder (`two_gpu_campaign.py`), CEILINGS what `two_gpu_ceilings.py` wrote. A campaign that is
not at its end is told as far as it is: an arm whose bracket is not closed has a ratio to the baseline's median run and
no interval. Each arm is held against the estimate with the curve of the all-reduce that it uses.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.gpu.campaign_slices import state_of
from benchmarks.gpu.tables import quartiles
from benchmarks.gpu.two_gpu_campaign import TRIED

from assay.plan.evidence import point_effects, screen_effect
from assay.plan.scores import point_names, scores
from assay.plan.series import MAIN
from assay.records.hypothesis import Hypothesis
from assay.records.run import RunStatus
from assay.records.state import CampaignState, RunRecord
from assay.records.verdict import Effect

KIB, US = 1024, 1e-6
CURVES = {"custom-all-reduce-off": ("nccl",), "nccl-all-reduce-ll": ("nccl-ll",)}
"""The algorithms of an arm's all-reduces; of every other arm, vLLM's own kernel and NCCL beyond its largest message."""
USUAL = ("vllm-custom", "nccl")
TOLD = (
    "p2p_bytes_per_s",
    "p2p_both_ways_bytes_per_s",
    "p2p_copy_s",
    "host_link_bytes_per_s",
    "host_link_back_bytes_per_s",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("campaign", type=Path)
    parser.add_argument("ceilings", type=Path, help="the folder with ceilings.json")
    parser.add_argument(
        "--model", help="a folder with the model's config.json, where the record does not hold its shape"
    )
    asked = parser.parse_args()
    path = asked.ceilings / "ceilings.json"
    found = json.loads(path.read_text()) if path.exists() else None
    state = state_of(asked.campaign)
    for part in (
        links(found) if found else iter([f"(no {path})"]),
        runs(state) if state else iter(["(no run was made)"]),
        arms(state) if state else iter(()),
        held(state, asked.campaign, found, asked.model) if state and found else iter(()),
    ):
        print("\n".join(part), end="\n\n")


def links(found: dict[str, Any]) -> Iterator[str]:
    """Copies, collectives by size, and what runs beside products."""
    readings = found["readings"]
    yield f"Links: {found['about']}"
    yield ""
    yield from _row("copy", "median", "quartiles", "check")
    yield "|---|---:|---:|---|"
    for one in readings:
        if one["name"] in TOLD:
            scale, unit = (1e9, "GB/s") if one["unit"] == "bytes/s" else (US, "us")
            low, middle, high = (value / scale for value in quartiles(one["samples"]))
            yield from _row(
                f"{one['name'].rsplit('_bytes')[0].removesuffix('_s')}, {unit}", f"{middle:,.1f}",
                f"{low:,.1f}-{high:,.1f}", _good(one, one["check"]),
            )  # fmt: skip
    yield from _collectives(readings)
    yield from _overlaps(readings)
    for name, problem in found["problems"].items():
        yield f"\nnot measured: {name}: {problem}"
    if said := found.get("nccl_settings_read"):
        read = ", ".join(f"{name} ({count}x)" for name, count in sorted(said.items()))
        yield f"\nNCCL's log says that it read: {read}"


def _collectives(readings: list[dict[str, Any]]) -> Iterator[str]:
    """Microseconds by message and algorithm; the fastest of a size is marked."""
    for name in dict.fromkeys(one["name"] for one in readings if "algorithm" in one):
        here = {(one["algorithm"], one["message_bytes"]): one for one in readings if one["name"] == name}
        algorithms = list(dict.fromkeys(algorithm for algorithm, _ in here))
        yield f"\n{name.removesuffix('_s').replace('_', '-')}, us (median; the fastest of a size is bold)\n"
        yield from _row("message", *algorithms)
        yield f"|{'---:|' * (1 + len(algorithms))}"
        for size in sorted({size for _, size in here}):
            times = {
                algorithm: statistics.median(one["samples"]) / US
                for algorithm in algorithms
                if (one := here.get((algorithm, size))) is not None and one["correct"]
            }
            best = min(times.values(), default=math.inf)
            cells = [_cell(here.get((algorithm, size)), times.get(algorithm), best) for algorithm in algorithms]
            yield from _row(f"{size / KIB:,.0f} KiB", *cells)


def _cell(one: dict[str, Any] | None, time_us: float | None, best_us: float) -> str:
    if one is None:
        return "-"
    if time_us is None:
        return "WRONG"
    mark = "**" if time_us == best_us else ""
    return f"{mark}{time_us:,.1f}{mark}"


def _overlaps(readings: list[dict[str, Any]]) -> Iterator[str]:
    """Of what could be hidden (the shorter of the two), how much was."""
    rows = [one for one in readings if one["name"] == "overlap_s"]
    if rows:
        yield "\nEight products of a layer's size and eight all-reduces, us\n"
        yield from _row("tokens", "products alone", "all-reduces alone", "together", "hidden of the shorter")
        yield "|---:|---:|---:|---:|---:|"
    for one in rows:
        both = statistics.median(one["samples"])
        alone = one["compute_s"], one["communication_s"]
        hidden = (sum(alone) - both) / min(alone)
        yield from _row(f"{one['tokens']:,}", *(f"{time / US:,.0f}" for time in (*alone, both)), f"{hidden:.0%}")


def runs(state: CampaignState) -> Iterator[str]:
    """Every run, in the order in which they were made."""
    yield f"{state.spec.name}: {len(state.machine.gpus)}x {state.machine.gpus[0].name}, {state.build.version}"
    yield ""
    yield from _row(
        "run", "arm", "state", "ready after s", "whole run s", *_points(state, "tokens/s"), *_points(state, "ms")
    )
    yield "|---|---|---|---:|---:|" + "---:|" * (2 * len(point_names(state)))
    for run in state.runs:
        name, arm, outcome = run.intent.run_id, run.intent.arm.label, run.outcome
        if outcome is None:
            yield from _row(name, arm, "cut off by the end of the time", *[""] * (2 + 2 * len(point_names(state))))
            continue
        told = [_measured(run, point) for point in point_names(state)]
        ready = "" if outcome.start_s is None else f"{outcome.start_s:.0f}"
        status = outcome.status if outcome.status is RunStatus.OK else f"{outcome.status}: {outcome.reason}"
        rates, times = ([pair[at] for pair in told] for at in (0, 1))
        yield from _row(name, arm, status, ready, f"{outcome.duration_s:.0f}", *rates, *times)


def arms(state: CampaignState) -> Iterator[str]:
    """Predicted against measured, by arm."""
    scatter = (
        ""
        if state.calibration is None
        else f"one A/A bracket scatters by {state.calibration.bracket_sd:.1%} either way"
    )
    yield f"Arms ({scatter or 'the calibration is not at its end'})"
    yield ""
    yield from _row("arm", "tier", "predicted", "measured", *_points(state, "streams"), "state")
    yield "|---|--:|---|---|" + "---|" * len(point_names(state)) + "---|"
    known = {one.id: one for one in state.hypotheses}
    for name in (one for one in TRIED if one in known):
        hypothesis = known[name]
        low, high = hypothesis.optimization.predicted
        verdict = state.verdicts.get(name)
        whole = verdict.effect if verdict is not None and verdict.effect is not None else screen_effect(state, name)
        by_point = point_effects(state, MAIN, name)
        told = [_effect(by_point.get(point)) or _ratio(state, name, point) for point in point_names(state)]
        yield from _row(
            name, str(hypothesis.optimization.tier), f"{low:+.0%} to {high:+.0%}",
            _effect(whole) or _ratio(state, name, None), *told, _state_of(state, hypothesis),
        )  # fmt: skip


def held(state: CampaignState, folder: Path, found: dict[str, Any], model: str | None) -> Iterator[str]:
    """Milliseconds per output token, expected and measured; the baseline over all of its runs."""
    yield "Expected and measured, ms per output token"
    yield ""
    yield from _row(
        "arm", "streams", "all-reduce by", "floor", "a step of decode", "expected", "measured", "expected / measured"
    )
    yield "|---|--:|---|--:|--:|---|--:|--:|"
    notes: set[str] = set()
    for arm, run in [("baseline", None), *_first_runs(state)]:
        answer = _characterized(folder, of_arm(found, arm), run, model)
        notes |= {note for note in answer.get("notes", []) if not answer.get("held_loads")}
        for one in answer.get("held_loads") or []:
            yield from _held_row(arm, one, CURVES.get(arm, USUAL))
    yield from (f"\nnot held: {note}" for note in sorted(notes))


def _held_row(arm: str, one: dict[str, Any], algorithms: tuple[str, ...]) -> Iterator[str]:
    load, expected = one["load"], one["expected_s"]
    ms = {key: f"{1e3 * expected[key]:.3g}" for key in ("low", "high")}
    inside = expected["low"] <= load["tpot_s"] <= expected["high"]
    yield from _row(
        arm, str(load["sequences"]), " or ".join(algorithms), f"{1e3 * one['floor_s']:.2f}",
        f"{1e3 * one['step']['mid']:.2f}", f"{1e3 * expected['mid']:.2f} ({ms['low']} to {ms['high']})",
        f"{1e3 * load['tpot_s']:.2f}",
        f"{expected['mid'] / load['tpot_s']:.2f}{'' if inside else ', outside of the range'}",
    )  # fmt: skip


def of_arm(found: dict[str, Any], arm: str) -> dict[str, Any]:
    """Facts and curves for an estimate of one arm: its all-reduce's curves, as what the engine uses unasked."""
    curves = [one for one in found["curves"] if one["collective"] != "all_reduce" and one["algorithm"] == "nccl"]
    for place, algorithm in enumerate(CURVES.get(arm, USUAL)):
        name = ("default", "nccl")[place]
        curves += [
            {**one, "algorithm": name}
            for one in found["curves"]
            if (one["collective"], one["algorithm"]) == ("all_reduce", algorithm)
        ]
    return {"facts": found["facts"], "curves": curves}


def _characterized(folder: Path, facts: dict[str, Any], run: str | None, model: str | None) -> dict[str, Any]:
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(facts, file)
        file.flush()
        words = [
            sys.executable,
            "-m",
            "assay",
            "characterize",
            "--folder",
            str(folder),
            "--measured",
            file.name,
            "--json",
        ]
        words += ["--run", run] if run else []
        words += ["--model", model] if model else []
        ended = subprocess.run(words, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        said = (ended.stderr.strip().splitlines() or ["no output"])[0]
        return {"notes": [f"{run or 'baseline'}: exit code {ended.returncode}: {said}"]}
    answer: dict[str, Any] = json.loads(ended.stdout)
    return answer


def _first_runs(state: CampaignState) -> list[tuple[str, str]]:
    """Of each arm that was measured, its first run that counts."""
    found: dict[str, str] = {}
    for run in state.runs:
        if run.intent.candidate in TRIED and run.outcome and run.outcome.measures:
            found.setdefault(str(run.intent.candidate), run.intent.run_id)
    return [(name, found[name]) for name in TRIED if name in found]


def _measured(run: RunRecord, point: str) -> tuple[str, str]:
    """Tokens/s and milliseconds a token."""
    outcome = run.outcome
    measures = None if outcome is None else outcome.measures if point == "main" else outcome.points.get(point)
    if measures is None:
        return "", ""
    tpot_s = measures.tpot.p50_s
    return f"{measures.output_tokens_per_s:,.0f}", "" if tpot_s is None else f"{1e3 * tpot_s:.2f}"


def _points(state: CampaignState, unit: str) -> list[str]:
    sizes = [state.spec.workload.concurrency, *(one.concurrency for one in state.spec.workload.points)]
    return [f"{size} streams" if unit == "streams" else f"{unit}, {size} streams" for size in sizes]


def _effect(found: Effect | None) -> str:
    if found is None:
        return ""
    return f"{found.percent:+.1f}% [{found.percent_low:+.1f}, {found.percent_high:+.1f}]"


def _ratio(state: CampaignState, name: str, point: str | None) -> str:
    """Of the arm's runs to the baseline's by their medians, where no bracket tells an interval."""
    known = scores(state, point)

    def middle(candidates: set[str | None]) -> float | None:
        told = [known.get(run.intent.run_id) for run in state.runs if run.intent.candidate in candidates]
        values = [one for one in told if one is not None]
        return statistics.median(values) if values else None

    mine, others = middle({name}), middle({None, "baseline"})
    return "" if mine is None or others is None else f"{math.expm1(mine - others):+.1%} (no interval)"


def _state_of(state: CampaignState, hypothesis: Hypothesis) -> str:
    if (verdict := state.verdicts.get(hypothesis.id)) is not None:
        return verdict.kind if verdict.effect is not None else f"{verdict.kind}: {verdict.reason}"
    if (screened := state.screened.get(hypothesis.id)) is not None:
        return "goes on to composition" if screened.promising else "decided"
    ran = any(run.intent.candidate == hypothesis.id for run in state.runs)
    return "begun" if ran else (hypothesis.blocked_reason or "not begun")


def _good(one: dict[str, Any], text: str) -> str:
    return text if one["correct"] else f"WRONG: {text}"


def _row(*cells: str) -> Iterator[str]:
    yield f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
