"""What campaigns of an engine on one GPU share: a model of GLM-5's shape, and going on in slices of GPU time.

GPU time comes in slices: runs are begun only as far as the time left holds them. The same command goes on where it
stopped, also on the next machine of the same fingerprint; no bracket spans two machines. The model is written when it
is not there (`moe_model.py`): seeded, so that every machine with the same kind of GPU serves the same weights.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.gpu.moe_model import HEADS

from assay import api
from assay.plan.fold import fold
from assay.records.run import RunOutcome
from assay.records.spec import Budget, CampaignSpec, Gates, LoadPoint, Objective, Workload
from assay.records.state import CampaignState, RunRecord
from assay.store.reader import read_events

HERE = Path(__file__).parent
FIRST_RUN_S = 240.0
"""Allowed for a run while none has been made: a cold start compiles, and reads the model from the disk."""
MARGIN_S = 10.0
"""Assay's own start and its report at the end, outside of any run."""
STOP_S = 60.0
"""For `assay run` to stop its server and to record the run, once it was interrupted."""
INTERRUPTED = 130
ENDING_S = 20.0
"""Of a slice in one call, kept for that."""
WORKLOAD = Workload(
    concurrency=64,
    input_tokens=(256, 256),
    output_tokens=(160, 288),
    window_s=2.0,
    windows=3,
    warmup_min_s=2.0,
    warmup_max_s=20.0,
    points=[LoadPoint(name="c16", concurrency=16)],
)
"""The same for every engine: decode at 64 and at 16 streams."""
CONTEXT_TOKENS, MOST_RUNNING, MEMORY_FRACTION = 4096, 128, 0.6
"""Limits of the server, which each engine's flags call otherwise: longest request, most at once, part of the memory."""
OBJECTIVE = Objective(min_effect=0.03)
GATES = Gates(max_foreign_cores=1.0)
BUDGET = Budget(
    total_s=3 * 3600.0,
    calibration_brackets=2,
    block=4,
    min_brackets=1,
    max_brackets=4,
    confirmation_brackets=2,
    soak_s=20.0,
)
"""One bracket may decide in the screen, because GPU time is scarce; what is adopted rests on fresh runs besides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One engine's campaign, before anybody says where."""

    engine: str
    """How people write its name: vLLM."""
    spec: Callable[[Path, str], CampaignSpec]
    """The question, for a model's folder and a Python that has the engine."""
    layers: int
    """2.6 GB each with experts 256 columns wide."""
    intermediate: int
    """Columns of an expert."""
    heads: int = HEADS
    """Of attention."""
    workers: int = 1
    """Processes that write the model."""
    in_one_call: bool = False
    """One call of Assay until the time ends, and a run that is cut off by that is lost: for a slice that is not long
    enough to be planned by the length of its runs, and machines whose memory grows between two calls."""
    catalogue: Path | None = None
    """The campaign's own entries, where the built-in ones are not enough."""


def main(summary: str, question: Question) -> int:
    """Go on with the campaign for as long as there is time; `summary`: what the script is for, in a line."""
    begun_s = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that `assay run` is ended, too
    asked = _asked(summary, question)
    make_model(asked, heads=asked.heads, workers=asked.workers)
    _say(begun_s, "model is there")
    if not (asked.folder / "assay.toml").exists():
        api.init(asked.folder, question.spec(asked.model, asked.python))
    if question.catalogue is not None:
        shutil.copytree(question.catalogue, asked.folder / "catalogue", dirs_exist_ok=True)
    if question.in_one_call:
        return until_time_ends(asked.folder, begun_s, asked.seconds)
    return carry_on(asked.folder, begun_s, asked.seconds)


def make_model(asked: argparse.Namespace, *, heads: int = HEADS, workers: int = 1) -> None:
    """Write the model, or make sure that the one there is the one that is asked for."""
    if not (asked.model / "model.safetensors.index.json").exists():
        sizes = ["--layers", str(asked.layers), "--intermediate", str(asked.intermediate)]
        sizes += ["--heads", str(heads), "--workers", str(workers)]
        made = [str(HERE / "moe_model.py"), str(asked.model), "--tokenizer", str(asked.tokenizer), *sizes]
        subprocess.run([asked.python, *made], check=True)
    config = json.loads((asked.model / "config.json").read_text())
    found = config["num_hidden_layers"], config["moe_intermediate_size"], config["num_attention_heads"]
    if found != (asked.layers, asked.intermediate, heads):
        sys.exit(
            f"{asked.model} has {found[0]} layers of experts {found[1]} wide and {found[2]} heads, "
            f"not {asked.layers} of {asked.intermediate} and {heads}: "
            "name another folder, or give --layers, --intermediate and --heads as it was made"
        )


def carry_on(folder: Path, begun_s: float, seconds: float) -> int:
    """Make the runs that the time left holds; returns Assay's exit code, 0 where only the time ended."""
    assay = [sys.executable, "-m", "assay"]
    earlier = len(runs_of(folder))
    code = 0
    while num_runs := runs_that_fit(runs_of(folder), earlier, begun_s + seconds - time.monotonic() - soak_s(folder)):
        before = runs_of(folder)
        code = ended([*assay, "run", "--folder", str(folder), "--plain", "--max-runs", str(num_runs)])
        made = runs_of(folder)[len(before) :]
        for run in made:
            _say(begun_s, told(run))
        if code != 0 or len(made) < num_runs:  # it cannot go on, or is finished
            break
    subprocess.run([*assay, "status", "--folder", str(folder)], check=False)
    return code


def until_time_ends(folder: Path, begun_s: float, seconds: float) -> int:
    """One call of Assay, interrupted when the time is over; its exit code, 130 then."""
    assay = [sys.executable, "-m", "assay"]
    before = len(runs_of(folder))
    left_s = begun_s + seconds - ENDING_S - time.monotonic()
    code = ended([*assay, "run", "--folder", str(folder), "--plain"], left_s)
    for run in runs_of(folder)[before:]:
        _say(begun_s, told(run))
    subprocess.run([*assay, "status", "--folder", str(folder)], check=False)
    return code


def ended(words: Sequence[str], limit_s: float | None = None) -> int:
    """The exit code of a command that is left the time to end by itself when this script is interrupted.

    A Ctrl-C reaches both, and `subprocess.run` would kill the command before its server is stopped.

    Args:
        words: the command.
        limit_s: the command is interrupted after so many seconds; None: it is not.
    """
    started = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    try:
        with suppress(subprocess.TimeoutExpired):
            return started.wait(limit_s)
        started.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            started.wait(STOP_S)
    except KeyboardInterrupt:
        with suppress(subprocess.TimeoutExpired):
            started.wait(STOP_S)
        raise
    finally:
        if started.poll() is None:
            started.terminate()
    return INTERRUPTED


def soak_s(folder: Path) -> float:
    """What a run to come may take longer than those before it: the first of a candidate in composition is soaked.

    A call of Assay may come from the screen to composition by itself.
    """
    state = state_of(folder)
    return state.spec.budget.soak_s if state and state.headline is None else 0.0


def runs_that_fit(runs: Sequence[RunRecord], earlier: int, left_s: float) -> int:
    """How many more runs the time left holds.

    The first run on a machine is cold: it may take as long as any before it, and says little of those after it.

    Args:
        runs: all runs of the campaign.
        earlier: how many of them were made before this slice.
        left_s: until the slice ends.
    """
    took_s = [run.outcome.duration_s for run in runs if run.outcome and run.outcome.duration_s > 0]
    here_s = [run.outcome.duration_s for run in runs[earlier:] if run.outcome and run.outcome.duration_s > 0]
    warm_s = here_s[1:] or here_s
    longest_s = max(warm_s or took_s, default=FIRST_RUN_S)
    fit = int(max(0.0, left_s - MARGIN_S) // longest_s)
    return fit if len(here_s) > 1 else min(1, fit)


def runs_of(folder: Path) -> list[RunRecord]:
    """The runs so far."""
    state = state_of(folder)
    return state.runs if state else []


def state_of(folder: Path) -> CampaignState | None:
    """The campaign as recorded; None while nothing is: a plan that failed leaves an empty record."""
    database = folder / "assay.db"
    events = read_events(database) if database.exists() else []
    return fold(events) if events else None


def told(run: RunRecord) -> str:
    """One run in a line: what it was, how it ended, how long it took, what it measured."""
    name = f"{run.intent.run_id} {run.intent.arm.label}"
    if run.outcome is None:
        return f"{name}: has not ended"
    ready = "" if run.outcome.start_s is None else f", ready after {run.outcome.start_s:.0f} s"
    return f"{name}: {run.outcome.status}{ready}, {run.outcome.duration_s:.0f} s in all{_rates(run.outcome)}"


def _rates(outcome: RunOutcome) -> str:
    if outcome.measures is None:
        return f": {outcome.reason}"
    points = {"main": outcome.measures, **outcome.points}
    return "".join(f", {name} {one.output_tokens_per_s:,.0f} tokens/s" for name, one in points.items())


def _asked(summary: str, question: Question) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=summary)
    parser.add_argument("--python", required=True, help=f"a Python that has {question.engine}")
    parser.add_argument("--tokenizer", type=Path, required=True, help="a model folder whose tokenizer is used")
    parser.add_argument("--model", type=Path, required=True, help="where the model is, or will be")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=500.0)
    sizes = "2.6 GB each with experts 256 columns wide (%(default)s)"
    parser.add_argument("--layers", type=int, default=question.layers, help=sizes)
    parser.add_argument(
        "--intermediate", type=int, default=question.intermediate, help="columns of an expert (%(default)s)"
    )
    parser.add_argument("--heads", type=int, default=question.heads, help="of attention (%(default)s)")
    parser.add_argument("--workers", type=int, default=question.workers, help="that write the model (%(default)s)")
    return parser.parse_args()


def _say(begun_s: float, text: str) -> None:
    print(f"[{time.monotonic() - begun_s:.0f} s] {text}", flush=True)
