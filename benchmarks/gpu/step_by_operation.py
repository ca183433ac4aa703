"""The estimate of vLLM's decode step held against a measured one, operation by operation, in one launch of the server.

    python -m benchmarks.gpu.step_by_operation --python /opt/vllm/bin/python --tokenizer MODEL_FOLDER \
        --model /opt/models/glm5-slice --out results [--streams 64,16] [-- FLAGS OF vllm serve]

Run it from the repository's folder. The ceilings of the GPU come first, while nothing else uses it (or from
`--measured`). Then the campaign's server (`vllm_campaign.py`: its model, its flags) is started with the torch profiler
at hand and idle. Each operating point is measured by `assay bench` with no profile made yet; only after all of them two
dozen steps of each are profiled under the same load. `assay characterize --run LOAD_TEST --trace TRACE` then says what
every operation took and was expected to take, and where the two differ; its words, its JSON and the trace (only what
is read of it) are kept.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

from assay.load.server import parse_metrics

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.gpu.campaign_slices import WORKLOAD, make_model
from benchmarks.gpu.running import end
from benchmarks.gpu.vllm_campaign import QUESTION

ASSAY = [sys.executable, "-m", "assay"]
HOST, READY_S, ASK_S, STOP_S = "127.0.0.1", 240.0, 2.0, 90.0
CEILINGS_S, BENCH_S, TOLD_S = 180.0, 150.0, 180.0
"""Most that a command of Assay may take; a load test's windows come on top."""
PROFILED_STEPS = 24
LOAD_S, LOAD_BEFORE_S, PROFILE_S, LOAD_END_S = 60.0, 3.0, 1.0, 10.0
MOST_TRACE_BYTES = 5_000_000
KEPT = frozenset(
    {"kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_driver", "user_annotation", "gpu_user_annotation"}
)
"""Of a trace: what `assay characterize` reads."""
ON_HOST = frozenset({"cuda_runtime", "cuda_driver", "user_annotation"})


def main() -> int:
    """All of it; the exit code is 1 when a point could not be told."""
    asked = arguments()
    asked.out.mkdir(parents=True, exist_ok=True)
    say = Clock(asked.seconds)
    if asked.layers:
        make_model(asked)
    say(f"model is there: {asked.model}")
    if asked.measured is None and asked.on is None:
        words = [*ASSAY, "characterize", "--json", "--folder", str(asked.out), "--model", str(asked.model)]
        say(f"ceilings: {ended(call(words, asked.out / 'ceilings.json', CEILINGS_S))}")
    server, url = start(asked)
    try:
        if not ready(server, url, say.left_s()):
            print("".join((asked.out / "server.log").read_text(errors="replace").splitlines(keepends=True)[-25:]))
            return 1
        say("server is ready")
        for streams in asked.streams:
            say(f"{streams} streams measured: {ended(bench(asked, url, streams))}")
        traces = {}
        for streams in asked.streams:
            traces[streams] = profile(asked, url, streams)
            say(f"{streams} streams profiled: {traces[streams] or 'no trace was written'}")
    finally:
        end(server)
        server.wait()
    say("server is stopped")
    points = [told(asked, streams, traces.get(streams)) for streams in asked.streams]
    for point in points:
        say(f"{point['streams']} streams: {point.get('problem') or ('held' if point.get('held') else 'not held')}")
    (asked.out / "step.json").write_text(json.dumps({"points": points}, indent=1))
    say("done")
    return 0 if all(point.get("held") for point in points) else 1


def arguments() -> argparse.Namespace:
    """What is asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", required=True, help="a Python that has vLLM")
    parser.add_argument("--tokenizer", type=Path, help="a model folder whose tokenizer is used, to write the model")
    parser.add_argument("--model", type=Path, required=True, help="where the model is, or will be")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=400.0)
    parser.add_argument("--streams", type=lambda text: [int(one) for one in text.split(",")], default=[64, 16])
    parser.add_argument(
        "--layers", type=int, default=QUESTION.layers, help="of the model that is written; 0: take it as it is"
    )
    parser.add_argument(
        "--intermediate", type=int, default=QUESTION.intermediate, help="columns of an expert (%(default)s)"
    )
    parser.add_argument("--measured", type=Path, help="ceilings of the GPU from a file, in place of measuring them")
    parser.add_argument("--on", help="the box, where it is not this machine's GPUs")
    parser.add_argument(
        "--routing", default="zipf:1", help="how tokens choose experts: as random weights do (%(default)s), or uniform"
    )
    parser.add_argument("--window", type=float, default=3.0, help="seconds of one of three windows (%(default)s)")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("flags", nargs="*", help="after --: flags of `vllm serve`, in place of the campaign's")
    asked = parser.parse_args()
    if asked.tokenizer is None and not (asked.model / "config.json").exists():
        parser.error(f"there is no model in {asked.model}: give --tokenizer, and it is written")
    return asked


class Clock:
    """Says what happened, and when."""

    def __init__(self, seconds: float) -> None:
        self._begun_s, self._seconds = time.monotonic(), seconds

    def __call__(self, words: str) -> None:
        """One line."""
        print(f"[{time.monotonic() - self._begun_s:4.0f} s] {words}", flush=True)

    def left_s(self) -> float:
        """Of the time that was allowed."""
        return self._seconds - (time.monotonic() - self._begun_s)


def start(asked: argparse.Namespace) -> tuple[subprocess.Popen[bytes], str]:
    """The server, with a profiler that waits until it is asked."""
    profiler = {
        "profiler": "torch",
        "torch_profiler_dir": str((asked.out / "profiles").resolve()),
        "torch_profiler_with_stack": False,
        "torch_profiler_dump_cuda_time_total": False,
        "ignore_frontend": True,
        "detailed_trace_annotation": True,
        "max_iterations": PROFILED_STEPS,
    }
    target = QUESTION.spec(asked.model, asked.python).target
    flags = asked.flags or words_of(dict(target.flags))
    where = ["--host", HOST, "--port", str(asked.port), "--served-model-name", "m"]
    argv = [asked.python, "-m", "vllm.entrypoints.cli.main", "serve", str(asked.model), *where, *flags]
    with (asked.out / "server.log").open("wb") as log:
        started = subprocess.Popen(
            [*argv, "--profiler-config", json.dumps(profiler)],
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **dict(target.env)},
            start_new_session=True,
        )
    return started, f"http://{HOST}:{asked.port}"


def words_of(flags: dict[str, Any]) -> list[str]:
    """Flags as vLLM spells them: `--no-...` for what is off."""
    words: list[str] = []
    for name, value in flags.items():
        if isinstance(value, bool):
            words.append(name if value else f"--no-{name.removeprefix('--')}")
        else:
            words += [name, str(value)]
    return words


def ready(server: subprocess.Popen[bytes], url: str, limit_s: float) -> bool:
    """Whether it answers before it dies or the time is over."""
    until_s = time.monotonic() + min(READY_S, limit_s)
    while time.monotonic() < until_s and server.poll() is None:
        try:
            with urlopen(f"{url}/health", timeout=ASK_S):
                return True
        except (URLError, OSError):
            time.sleep(0.5)
    return False


def bench_words(asked: argparse.Namespace, url: str, streams: int, folder: Path) -> list[str]:
    """The campaign's load; ids with every chunk, since tokens of random weights are often no text."""
    lengths = {"--input": WORKLOAD.input_tokens, "--output": WORKLOAD.output_tokens}
    load = [word for option, (low, high) in lengths.items() for word in (option, f"{low}-{high}")]
    load += ["--concurrency", str(streams), "--warmup-max", f"{WORKLOAD.warmup_max_s:g}"]
    load += ["--extra-body", "return_token_ids=true"]
    return [*ASSAY, "bench", url, *load, "--window", str(asked.window), "--folder", str(folder), "--json"]


def bench(asked: argparse.Namespace, url: str, streams: int) -> int | None:
    """Measure a point."""
    words = bench_words(asked, url, streams, asked.out / f"bench_c{streams}")
    return call([*words, "--windows", "3"], asked.out / f"bench_c{streams}.json", BENCH_S + 3 * asked.window)


def profile(asked: argparse.Namespace, url: str, streams: int) -> str | None:
    """Profile under the same load; the trace, cut to what is read of it, or None."""
    folder = asked.out / "profiles"
    before = set(folder.glob("*.json.gz"))
    words = bench_words(asked, url, streams, asked.out / f"load_c{streams}")
    with (asked.out / f"load_c{streams}.json").open("wb") as sink:
        load = subprocess.Popen(
            [*words, "--windows", "30", "--seed", "2"], stdout=sink, stderr=subprocess.DEVNULL, start_new_session=True
        )
    try:
        if not wait_for_load(url, streams):
            print(f"the server never ran {streams} requests at a time: the trace shows fewer", flush=True)
        post(f"{url}/start_profile")
        time.sleep(PROFILE_S)
        post(f"{url}/stop_profile")
    except OSError as error:
        print(f"profiling {streams} streams: {error}", flush=True)
    finally:
        load.send_signal(signal.SIGINT)  # it ends its own workers then
        with suppress(subprocess.TimeoutExpired):
            load.wait(LOAD_END_S)
        end(load)
        load.wait()
    made = sorted(set(folder.glob("*.json.gz")) - before, key=lambda path: path.stat().st_size)
    if not made:
        return None
    kept = asked.out / f"trace_c{streams}.json.gz"
    try:
        steps = cut(made[-1], kept)
    except (OSError, EOFError, ValueError, KeyError) as error:  # cut short while it was written
        print(f"{made[-1]}: no trace: {type(error).__name__}: {error}", flush=True)
        return None
    return f"{kept} ({steps} steps, {kept.stat().st_size / 1e6:.2f} MB; {made[-1].stat().st_size / 1e6:.2f} MB written)"


def wait_for_load(url: str, streams: int) -> bool:
    """Until the server runs about that many requests, and long enough for the first to be replaced; whether it did."""
    until_s = time.monotonic() + LOAD_S
    while time.monotonic() < until_s:
        with suppress(OSError), urlopen(f"{url}/metrics", timeout=ASK_S) as answer:
            if parse_metrics(answer.read().decode()).get("vllm:num_requests_running", 0.0) >= 0.9 * streams:
                time.sleep(LOAD_BEFORE_S)
                return True
        time.sleep(0.2)
    return False


def post(address: str) -> None:
    """Ask, and wait until it is done: writing a trace takes seconds."""
    with urlopen(Request(address, method="POST"), timeout=STOP_S) as answer:
        answer.read()


def cut(whole: Path, kept: Path, most_bytes: int = MOST_TRACE_BYTES) -> int:
    """Leave out what is not read, and steps at the end until it is small enough; how many annotated steps are left."""
    trace = json.loads(gzip.decompress(whole.read_bytes()))
    events = [event for event in trace["traceEvents"] if event.get("cat") in KEPT]
    begins = sorted(
        float(event["ts"])
        for event in events
        if event["cat"] == "user_annotation" and str(event.get("name", "")).startswith("execute_")
    )
    steps = len(begins)
    while True:
        trace["traceEvents"] = until(events, begins[steps] if steps < len(begins) else float("inf"))
        kept.write_bytes(gzip.compress(json.dumps(trace).encode()))
        if kept.stat().st_size <= most_bytes or steps <= 2:  # one whole step is the least
            return steps
        steps = max(2, steps * 2 // 3)


def until(events: list[dict[str, Any]], host_us: float) -> list[dict[str, Any]]:
    """What the host did before that moment, and what it launched: devices run behind."""
    ours = [event for event in events if event["cat"] in ON_HOST and float(event["ts"]) < host_us]
    launched = {event.get("args", {}).get("correlation") for event in ours} - {None}
    ran = [event for event in events if event.get("args", {}).get("correlation") in launched]
    ran = [event for event in ran if event["cat"] not in ON_HOST]
    last_us = max((float(event["ts"]) for event in ran), default=0.0)
    marks = [event for event in events if event["cat"] == "gpu_user_annotation" and float(event["ts"]) <= last_us]
    return [*ours, *ran, *marks]


def told(asked: argparse.Namespace, streams: int, trace: str | None) -> dict[str, Any]:
    """What `assay characterize` says of a point, as words and as JSON."""
    found: dict[str, Any] = {"streams": streams, "trace": trace}
    if trace is None:
        return found | {"problem": "no trace was written"}
    name = asked.out / f"held_c{streams}"
    words = [*ASSAY, "characterize", "--folder", str(asked.out), "--model", str(asked.model)]
    words += ["--trace", str(asked.out / f"trace_c{streams}.json.gz")]
    words += ["--routing", asked.routing]
    words += [] if asked.on is None else ["--on", asked.on]
    words += [] if asked.measured is None else ["--measured", str(asked.measured)]
    run = ["--run", str(asked.out / f"bench_c{streams}")]
    if call([*words, *run, "--plain"], name.with_suffix(".txt"), TOLD_S) != 0:
        why = name.with_suffix(".err").read_text(errors="replace").strip()
        print(f"{streams} streams without the load test, by the trace's own steps: {why[-500:]}", flush=True)
        run = []
        call([*words, "--plain"], name.with_suffix(".txt"), TOLD_S)
    call([*words, *run, "--json"], name.with_suffix(".json"), TOLD_S)
    text = name.with_suffix(".txt").read_text()
    print(text[max(0, text.find("estimate held against")) :], flush=True)
    try:
        answer = json.loads(name.with_suffix(".json").read_text())
    except ValueError:
        return found | {"problem": f"`assay characterize` gave no answer: see {name.with_suffix('.err')}"}
    if "error" in answer:
        return found | {"problem": answer["error"]}
    found["by"] = "load test" if run else "trace alone"
    return found | {"held": answer.get("held"), "decode": (answer.get("trace") or {}).get("decode")}


def ended(code: int | None) -> str:
    """How a command ended, in words."""
    return "it took too long and was ended" if code is None else f"exit {code}"


def call(argv: list[str], out: Path, limit_s: float) -> int | None:
    """Run it, its answer in a file and its talk beside it; None: it took too long."""
    with out.open("wb") as sink, out.with_name(f"{out.stem}.err").open("wb") as talk:
        started = subprocess.Popen(argv, stdout=sink, stderr=talk, start_new_session=True)
        try:
            return started.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            end(started)


if __name__ == "__main__":
    sys.exit(main())
