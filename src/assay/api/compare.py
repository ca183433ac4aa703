"""The verb compare: two or more servers, measured in turn until the interval allows an answer."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.ports_bench import BenchProgress
    from assay.records.bench import BenchResult, BenchSpec, Comparison
    from assay.records.compare import CompareQuestion
    from assay.records.spec import Gates
    from assay.stats.brackets import Point
    from assay.stats.comparison import Answered, Rules

ATTEMPTS = 3
"""A side whose run does not count is measured again, so often in a row."""


def compare(targets: list[str], question: CompareQuestion, folder: Path, progress: BenchProgress) -> Comparison:
    """Hold every side but the first against the first: A B A C A ..., until every answer is there or rounds run out.

    Args:
        targets: URLs or launch commands (`assay.api.launch.serving`).
        question: what is judged, how sure it must be, on which load.
        folder: where each run's files go. The same question in a folder that holds some of its runs is carried on:
            whole runs count, one that was cut is made again.
        progress: where to say what is being done.

    Raises:
        UsageError: a target cannot be read, the workload does not fit, or the folder holds something else.
        EngineError: a server does not start, or cannot be reached.
        RecordError: the folder cannot be written, or was changed.
    """
    from assay.api.compare_folder import ANSWER
    from assay.store.atomic import atomic_write

    state = _State(targets, question, folder, progress)
    try:
        state.play()
    except BaseException:
        state.say_what_is_kept()
        raise
    found = state.comparison()
    atomic_write(folder / ANSWER, found.model_dump_json(indent=2).encode())
    return found


class _State:
    """A comparison as far as it got."""

    def __init__(self, targets: list[str], question: CompareQuestion, folder: Path, progress: BenchProgress) -> None:
        from assay import wiring
        from assay.api.compare_folder import Runs
        from assay.stats.comparison import Rules

        self._runs = Runs(folder, targets, question)
        self._question, self._folder, self._progress = question, folder, progress
        self._labels = question.labels or [chr(ord("A") + number) for number in range(len(targets))]
        self._targets = dict(zip(self._labels, targets, strict=True))
        self._reference, *self._others = self._labels
        self._points: list[Point] = []
        self._values: dict[str, list[float]] = {label: [] for label in self._labels}
        self._invalid: dict[str, list[str]] = {label: [] for label in self._labels}
        self._answers: dict[str, Answered] = {}
        self._probe = wiring.probe()
        self._machine = self._probe.machine()
        self._spent_s: list[float] = []
        self._noted: set[str] = set()
        self._whole = self._rounds = 0
        self._rules: Rules = Rules(
            alpha=question.alpha,
            min_effect=question.min_effect,
            num_sides=len(self._others),
            min_rounds=question.min_rounds,
            max_rounds=question.max_rounds,
        )

    def play(self) -> None:
        """Measure until every answer is there, or rounds run out, or a side cannot be measured."""
        if self._runs.num_kept:
            self._progress.result(f"carried on: {_runs_words(self._runs.num_kept)} in {self._folder}")
        order = Random(self._question.seed)
        if not self._measure(self._reference):
            return
        while self._rounds < self._question.max_rounds and (still_open := self._open()):
            order.shuffle(still_open)
            for label in still_open:
                if self._runs.wants_reference(self._reference) and not self._measure(self._reference):
                    return
                if not (self._measure(label) and self._measure(self._reference)):
                    return
            self._rounds += 1
            self._judge()

    def say_what_is_kept(self) -> None:
        """For whoever stopped it."""
        if self._whole:
            told = f"{_runs_words(self._whole)} kept; the same command with --folder {self._folder} carries on"
            self._progress.result(told)

    def comparison(self) -> Comparison:
        """What is known."""
        from assay.api.launch import is_url
        from assay.records.bench import Comparison, Side
        from assay.stats.comparison import NOT_YET
        from assay.store.redact import redact

        sides = [
            Side(label=label, target=str(redact(target)), launched=not is_url(target))
            for label, target in self._targets.items()
        ]
        effects = {
            label: (told.effect.log_ratio, told.effect.low, told.effect.high)
            for label, told in self._answers.items()
            if told.effect is not None
        }
        return Comparison(
            sides=sides,
            metric=self._question.metric,
            higher_is_better=_higher_is_better(self._question.metric),
            values=self._values,
            invalid=self._invalid,
            effects={label: self._as_measured(effect) for label, effect in effects.items()},
            verdicts={label: self._answers.get(label, NOT_YET).answer for label in self._others},
            sentences={label: self._sentence(label) for label in self._others},
            min_effect=self._question.min_effect,
            alpha=self._question.alpha,
            num_rounds=self._rounds,
        )

    def _open(self) -> list[str]:
        return [
            label for label in self._others if label not in self._answers or self._answers[label].answer == "undecided"
        ]

    def _measure(self, label: str) -> bool:
        """One run that counts; False when none did."""
        from assay.stats.brackets import Point

        for _ in range(ATTEMPTS):
            result = self._run(label)
            value = metric_value(result, self._question.metric) if result.valid else None
            if value is not None and value > 0:
                sign = 1.0 if _higher_is_better(self._question.metric) else -1.0
                candidate = None if label == self._reference else label
                self._points.append(Point(candidate=candidate, log_value=sign * math.log(value)))
                self._values[label].append(value)
                return True
            why = "; ".join(f"{gate.name}: {gate.evidence}" for gate in result.gates if not gate.passed)
            self._invalid[label].append(why or f"no {self._question.metric}")
            self._progress.result(f"{label}: a run that does not count: {why}", good=False)
        return False

    def _run(self, label: str) -> BenchResult:
        """A run that was made before, or one made now."""
        result = self._runs.take(label) or self._run_now(label)
        self._whole += 1
        return result

    def _run_now(self, label: str) -> BenchResult:
        from time import monotonic

        from assay.api.bench import measured
        from assay.api.launch import serving
        from assay.load.bench import prepare

        run, folder = self._runs.begin(label)
        expected_s = sum(self._spent_s) / len(self._spent_s) if self._spent_s else None
        left = (self._question.max_rounds - self._rounds) * 2 * len(self._open())
        total_s = None if expected_s is None else sum(self._spent_s) + expected_s * left
        number, most = len(self._values[label]) + 1, self._question.max_rounds
        text = f"{label}, run {number} (round {self._rounds + 1} of at most {most})"
        self._progress.phase(text, sum(self._spent_s), total_s)
        began = monotonic()
        self._probe.snapshot()  # begins the interval that the one after the run looks back on
        with serving(self._targets[label], folder / "server.log", self._question.start_timeout_s) as server:
            prepared = prepare(self._spec(server.url, run))
            self._note(label, [*prepared.notes, *server.notes])
            judge = partial(self._with_machine_gates, pid=server.pid)
            result = measured(prepared, folder, self._progress, server.alive, judge)
        self._spent_s.append(monotonic() - began)
        self._wait_for_quiet(result)
        return result

    def _note(self, label: str, notes: list[str]) -> None:
        """Once for each side: what was decided for the user."""
        for note in notes if label not in self._noted else ():
            self._progress.result(f"{label}: {note}")
        self._noted.add(label)

    def _with_machine_gates(self, result: BenchResult, pid: int | None) -> BenchResult:
        """A server of ours shares this machine: what else ran on it counts as it does in a campaign."""
        if pid is None:
            return result
        from assay.campaign.gates import machine_gates

        gates = machine_gates(self._probe.snapshot(pid), self._machine, self._limits())
        return result.model_copy(update={"gates": [*result.gates, *gates]})

    def _wait_for_quiet(self, result: BenchResult) -> None:
        """After a run that other processes disturbed, the next one would be disturbed as well."""
        from assay.campaign.gates import QUIET, wait_for_quiet

        if any(gate.name == QUIET and not gate.passed for gate in result.gates):
            say = partial(self._progress.phase, done_s=sum(self._spent_s), total_s=None)
            wait_for_quiet(self._probe, self._limits(), say)

    def _limits(self) -> Gates:
        from assay.records.spec import Gates

        return Gates(max_foreign_cores=self._question.max_foreign_cores)

    def _spec(self, url: str, run: int) -> BenchSpec:
        """Neighbours of a bracket get the same prompts: what differs is the server."""
        from assay.records.bench import BenchSpec

        question = self._question
        return BenchSpec(
            url=url,
            model=question.model or "",
            endpoint=question.endpoint,
            workload=question.workload,
            arrival=question.arrival,
            window_s=question.window_s,
            windows=question.windows,
            warmup_min_s=question.warmup_min_s,
            warmup_max_s=question.warmup_max_s,
            seed=question.seed if self._all_launched() else question.seed + 1000 * run,
            api_key_env=question.api_key_env,
        )

    def _all_launched(self) -> bool:
        """A server that lives on has seen the prompts of the run before: it gets fresh ones."""
        from assay.api.launch import is_url

        return not any(is_url(target) for target in self._targets.values())

    def _judge(self) -> None:
        from assay.stats.comparison import judge

        for label in self._open():
            told = self._answers[label] = judge(self._points, label, self._rules)
            if told.effect is not None:
                self._progress.result(self._sentence(label), good={"better": True, "worse": False}.get(told.answer))

    def _as_measured(self, effect: tuple[float, float, float]) -> tuple[float, float, float]:
        """From "more is better" to the metric's own direction: B's value over A's."""
        if _higher_is_better(self._question.metric):
            return effect
        estimate, low, high = effect
        return -estimate, -high, -low

    def _sentence(self, label: str) -> str:
        told = self._answers.get(label)
        metric, reference = self._question.metric, self._reference
        if told is None or told.effect is None:
            return f"{label} against {reference}: too few valid runs to say anything about {metric}"
        effect = (told.effect.log_ratio, told.effect.low, told.effect.high)
        estimate, low, high = (100 * math.expm1(value) for value in self._as_measured(effect))
        numbers = f"{estimate:+.1f}% [{low:+.1f}, {high:+.1f}]"
        worth = f"{100 * self._question.min_effect:g}%"
        meaning = {
            "better": f"{label} is better than {reference}",
            "worse": f"{label} is worse than {reference}",
            "same": f"{label} and {reference} are the same within {worth}",
            "undecided": f"{label} cannot be told from {reference}",
        }[told.answer]
        confidence = f"{100 * (1 - self._question.alpha):g}%"
        return f"{meaning}: {numbers} in {metric} ({confidence} interval, valid at every look, {self._rounds} rounds)"


def metric_value(result: BenchResult, metric: str) -> float | None:
    """The number that is judged; None where it was not measured."""
    measures = result.measures
    if measures is None:
        return None
    name, _, share = metric.removesuffix("_s").rpartition("_")
    if share in {"p50", "p90", "p95", "p99"}:
        value = getattr(getattr(measures, name).quantiles, f"{share}_s")
    else:
        value = getattr(measures, metric)
    return None if value is None else float(value)


def _runs_words(number: int) -> str:
    return f"{number} whole run{' is' if number == 1 else 's are'}"


def _higher_is_better(metric: str) -> bool:
    return metric.endswith("_per_s")
