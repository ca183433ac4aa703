"""Predicted against measured: decode of llama.cpp on this CPU, from ceilings that were measured beside it.

    python benchmarks/cpu_estimate.py [--repeats 3] [--folder FOLDER] [--json FILE]

For the embedded model as shipped (Q4_1), the same requantized (Q8_0, Q4_0, F16), and a mixture of experts with random
weights, with 1 thread and with all cores: tokens/s of one sequence predicted from the ceilings (`assay characterize`),
then measured on the embedded server. The ceilings that a model needs are measured anew right before each of its
measurements; what other processes disturbed is measured again, up to a limit, and marked.

Twice, since the speed of a virtual machine's cores may swing within seconds while nothing else runs on it: "typical" is
the median of requests against ceilings at their medians, "fast" the tenth fastest request against ceilings at their
best tenth.

The bound is checked by changing it: from one thread to all, arithmetic grows with the cores and memory bandwidth by
less. The table sets the predicted gain beside the measured one. Nothing here passes or fails.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from assay import models, wiring
from assay.engines.embedded_model import embedded_model
from assay.probes.ceilings import ceilings
from assay.probes.usage import read_usage, shares
from assay.process import free_port
from assay.records.base import FlagValue
from assay.records.ceilings import MAX_FOREIGN_CORES, Ceilings
from assay.records.estimate import OperatingPoint
from assay.records.machine import Machine
from assay.records.model_shape import LOOKED_UP
from assay.records.spec import EMBEDDED, Target
from assay.roofline import cpu

TYPES = ("Q8_0", "Q4_0", "F16")
TOKENS, REQUESTS, TRIES = 48, 10, 16
PROMPT = "Once upon a time, long before anybody had written a word of it down, number {} said"
QUIET_S, PATIENCE_S = 2.0, 600.0
CEILING_TRIES = 5
EXPERTS = {"layers": 8, "experts": 64, "top_k": 8, "hidden": 512, "ffn": 256, "heads": 8, "kv_heads": 4, "head": 64}


@dataclass(frozen=True)
class Row:
    model: str
    threads: int
    repeat: int
    predicted: float
    low: float
    high: float
    ceiling: float
    measured: float
    fast_predicted: float
    fast_measured: float
    bound: str
    foreign_cores: float
    disturbed_ceilings: int

    @property
    def quiet(self) -> bool:
        return self.foreign_cores <= MAX_FOREIGN_CORES and not self.disturbed_ceilings

    @property
    def error(self) -> float:
        return self.predicted / self.measured - 1

    @property
    def fast_error(self) -> float:
        return self.fast_predicted / self.fast_measured - 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path("cpu-estimate"))
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    files = make_models(given.folder)
    machine = wiring.probe().machine()
    counts = sorted({1, machine.usable_cores})
    rows: list[Row] = []
    for repeat in range(given.repeats):
        for name, path in files.items():
            found = measure_ceilings(machine, path)
            rows += [one(found, name, path, threads, repeat) for threads in counts]
        if given.json:
            given.json.write_text(
                json.dumps(
                    [{**asdict(row), "error": row.error, "fast_error": row.fast_error} for row in rows], indent=1
                )
            )
    tell(rows, counts, machine.cpu_model)


def make_models(folder: Path) -> dict[str, Path]:
    shipped = embedded_model()
    files = {"SmolLM2-135M Q4_1 (as shipped)": shipped}
    for kind in TYPES:
        path = folder / f"smollm2-{kind}.gguf"
        if not path.exists():
            say(f"making {path}")
            partial = path.with_suffix(".partial")
            words = [sys.executable, "-m", "assay.engines.requantize", str(shipped), str(partial), kind]
            subprocess.run(words, check=True)
            partial.replace(path)
        files[f"SmolLM2-135M {kind} (requantized)"] = path
    for kind in ("Q8_0", "Q4_0"):
        path = folder / f"moe-{kind}.gguf"
        if not path.exists():
            say(f"making {path}")
            write_moe(path.with_suffix(".partial"), shipped, kind, **EXPERTS)
            path.with_suffix(".partial").replace(path)
        files[f"random MoE 64 experts, top-8, {kind}"] = path
    return files


def write_moe(
    path: Path, tokenizer: Path, kind: str, *, layers: int, experts: int, top_k: int, hidden: int, ffn: int,
    heads: int, kv_heads: int, head: int,
) -> None:  # fmt: skip
    """A Qwen3-like mixture of experts with random weights: it talks nonsense at the speed of a real one."""
    source = gguf.GGUFReader(tokenizer)
    writer = gguf.GGUFWriter(path, "qwen3moe")
    for key, field in source.fields.items():
        if key.startswith("tokenizer."):
            array = field.types[0] == gguf.GGUFValueType.ARRAY
            add = writer.add_array if array else writer.add_key_value
            add(key, field.contents(), *([] if array else [field.types[0]]))
    vocab = len(source.fields["tokenizer.ggml.tokens"].contents())
    writer.add_name(f"random-moe-{experts}x{top_k}")
    settings: tuple[tuple[Callable[[Any], None], float], ...] = (
        (writer.add_context_length, 4096), (writer.add_embedding_length, hidden), (writer.add_block_count, layers),
        (writer.add_feed_forward_length, ffn), (writer.add_expert_feed_forward_length, ffn),
        (writer.add_head_count, heads), (writer.add_head_count_kv, kv_heads), (writer.add_key_length, head),
        (writer.add_value_length, head), (writer.add_expert_count, experts), (writer.add_expert_used_count, top_k),
        (writer.add_layer_norm_rms_eps, 1e-6), (writer.add_rope_freq_base, 1e6), (writer.add_vocab_size, vocab),
    )  # fmt: skip
    for tell_it, value in settings:
        tell_it(value)
    writer.add_file_type(gguf.LlamaFileType[f"MOSTLY_{kind}"])
    random, wanted = np.random.default_rng(1), gguf.GGMLQuantizationType[kind]

    def matrix(name: str, *shape: int, plain: bool = False) -> None:
        values = random.standard_normal(shape, dtype=np.float32) * np.float32(shape[-1] ** -0.5)
        if plain:
            writer.add_tensor(f"{name}.weight", values)
        else:
            writer.add_tensor(f"{name}.weight", gguf.quants.quantize(values, wanted), raw_dtype=wanted)

    def ones(name: str, size: int) -> None:
        writer.add_tensor(f"{name}.weight", np.ones(size, np.float32))

    matrix("token_embd", vocab, hidden)
    matrix("output", vocab, hidden)
    ones("output_norm", hidden)
    for number in range(layers):
        block = f"blk.{number}."
        for name, size in (("attn_norm", hidden), ("ffn_norm", hidden), ("attn_q_norm", head), ("attn_k_norm", head)):
            ones(block + name, size)
        matrix(block + "attn_q", heads * head, hidden)
        matrix(block + "attn_k", kv_heads * head, hidden)
        matrix(block + "attn_v", kv_heads * head, hidden)
        matrix(block + "attn_output", hidden, heads * head)
        matrix(block + "ffn_gate_inp", experts, hidden, plain=True)
        matrix(block + "ffn_gate_exps", experts, ffn, hidden)
        matrix(block + "ffn_up_exps", experts, ffn, hidden)
        matrix(block + "ffn_down_exps", experts, hidden, ffn)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def measure_ceilings(machine: Machine, path: Path) -> Ceilings:
    """All that the model needs, anew; what was disturbed is measured again."""
    shape = models.load(str(path))
    used = {cpu.kernel_type(matrix.storage.name) for _, matrix in shape.matrices() if matrix.part not in LOOKED_UP}
    for attempt in range(CEILING_TRIES):
        await_quiet()
        found = ceilings(
            machine, path.parent, lambda *_: None, storages=sorted(used | {"F16"}), shapes=cpu.weight_shapes(shape),
            model=path, again=attempt == 0,
        )  # fmt: skip
        if not found.untrusted:
            break
    return found


def one(found: Ceilings, name: str, path: Path, threads: int, repeat: int) -> Row:
    rates, foreign = decode(path, threads)
    context = 20 + TOKENS // 2
    point = OperatingPoint(phase="decode", sequences=1, context_tokens=context)
    step = cpu.estimate(models.load(str(path)), found, threads, point)
    fast = cpu.estimate(models.load(str(path)), at_best(found), threads, point)
    row = Row(
        name, threads, repeat, step.tokens_per_s.mid, step.tokens_per_s.low, step.tokens_per_s.high,
        step.ceiling_tokens_per_s, statistics.median(rates), fast.tokens_per_s.mid, float(np.quantile(rates, 0.9)),
        step.bound, foreign, sum(each.threads == threads for each in found.untrusted),
    )  # fmt: skip
    told = f"{name}, {threads} thread(s): predicted {row.predicted:.0f}, measured {row.measured:.0f} ({row.error:+.0%})"
    told += f"; fast {row.fast_predicted:.0f}, {row.fast_measured:.0f} ({row.fast_error:+.0%})"
    disturbed = f" (disturbed: {foreign:.2f} foreign cores, {row.disturbed_ceilings} ceilings)"
    say(told + ("" if row.quiet else disturbed))
    return row


def at_best(found: Ceilings) -> Ceilings:
    """Every ceiling at its best tenth."""
    best = [one.model_copy(update={"samples": [one.best]}) for one in found.measurements]
    return found.model_copy(update={"measurements": best})


def decode(path: Path, threads: int) -> tuple[list[float], float]:
    """Tokens/s of requests as the server times its own decode; the undisturbed ones, else the least disturbed."""
    engine = wiring.engine("llamacpp")
    target = Target(model=str(path), executable=EMBEDDED)
    flags: dict[str, FlagValue] = {"--threads": threads, "--ctx-size": 1024, "--parallel": 1}
    argv = engine.argv(engine.find(target), str(path), flags, free_port())
    await_quiet()
    server = engine.launch(argv, {}, path.with_suffix(".log"), "server.log")
    try:
        server.wait_ready(60)
        ask(server.base_url, 0)  # the first touches the weights
        seen: list[tuple[float, float]] = []
        for number in range(TRIES):
            before = read_usage(server.identity.pid)
            rate = ask(server.base_url, number + 1)
            foreign = shares(before, read_usage(server.identity.pid)).foreign_cpu_cores or 0.0
            seen.append((foreign, rate))
            if sum(each <= MAX_FOREIGN_CORES for each, _ in seen) >= REQUESTS:
                break
    finally:
        server.stop()
    quiet = [rate for foreign, rate in seen if foreign <= MAX_FOREIGN_CORES]
    if quiet:
        return quiet, max(foreign for foreign, _ in seen if foreign <= MAX_FOREIGN_CORES)
    foreign, rate = min(seen)
    return [rate], foreign


def ask(url: str, number: int) -> float:
    body = {
        "prompt": PROMPT.format(number), "n_predict": TOKENS, "temperature": 0, "ignore_eos": True,
        "cache_prompt": False,
    }  # fmt: skip
    request = urllib.request.Request(
        f"{url}/completion", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=300) as response:
        return float(json.load(response)["timings"]["predicted_per_second"])


def await_quiet() -> None:
    """Until other processes leave the cores alone; gives up after a while, and the rows say what was disturbed."""
    deadline_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s:
        before = read_usage(None)
        time.sleep(QUIET_S)
        foreign = shares(before, read_usage(None)).foreign_cpu_cores
        if foreign is None or foreign <= MAX_FOREIGN_CORES / 2:
            return
    say("other processes do not come to rest: measuring all the same")


def tell(rows: list[Row], counts: list[int], machine: str) -> None:
    print(
        "| model | threads | bound | predicted | range | measured | error "
        "| fast: predicted | measured | error | quiet |"
    )
    print("|---" * 11 + "|")
    errors: dict[str, list[float]] = {"typical": [], "fast": []}
    for name in dict.fromkeys(row.model for row in rows):
        for threads in counts:
            mine = [row for row in rows if (row.model, row.threads) == (name, threads)]
            quiet = [row for row in mine if row.quiet] or mine
            typical, fast = middle(quiet, "error"), middle(quiet, "fast_error")
            errors["typical"].append(abs(typical))
            errors["fast"].append(abs(fast))
            print(
                f"| {name} | {threads} | {quiet[0].bound} | {middle(quiet, 'predicted'):.0f} "
                f"| {middle(quiet, 'low'):.0f}..{middle(quiet, 'high'):.0f} | {middle(quiet, 'measured'):.0f} "
                f"| {typical:+.0%} | {middle(quiet, 'fast_predicted'):.0f} | {middle(quiet, 'fast_measured'):.0f} "
                f"| {fast:+.0%} | {len(quiet)} of {len(mine)} |"
            )
    print("\nTokens/s of one sequence; medians over the repeats.\n")
    for kind, found in errors.items():
        within = sum(error <= 0.25 for error in found)
        print(
            f"{kind}: median absolute error {statistics.median(found):.0%}, largest {max(found):.0%}, within 25% in "
            f"{within} of {len(found)}"
        )
    held = sum(row.low <= row.measured <= row.high for row in rows)
    over = sum(row.fast_measured > row.ceiling for row in rows)
    print(f"single measurements: {held} of {len(rows)} in the predicted range, {over} above the ceiling\n")
    if len(counts) > 1:
        bounds(rows, counts)
    print(f"\n{machine}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f} at the end, {time.strftime('%Y-%m-%d')}")


def bounds(rows: list[Row], counts: list[int]) -> None:
    few, many = counts[0], counts[-1]
    print(f"| model | bound at {few}, {many} threads | gain of threads: predicted | measured | apart |")
    print("|---" * 5 + "|")
    for name in dict.fromkeys(row.model for row in rows):
        predicted, measured = [], []
        for repeat in sorted({row.repeat for row in rows}):
            pair = [row for row in rows if (row.model, row.repeat) == (name, repeat)]
            one, other = (next(row for row in pair if row.threads == count) for count in (few, many))
            if one.quiet and other.quiet:
                predicted.append(other.fast_predicted / one.fast_predicted)
                measured.append(other.fast_measured / one.fast_measured)
        labels = ", ".join(next(r.bound for r in rows if (r.model, r.threads) == (name, count)) for count in counts)
        if not predicted:
            print(f"| {name} | {labels} | - | - | disturbed |")
            continue
        want, got = statistics.median(predicted), statistics.median(measured)
        print(f"| {name} | {labels} | x{want:.2f} | x{got:.2f} | {got / want - 1:+.0%} |")


def middle(rows: list[Row], name: str) -> float:
    return float(statistics.median(getattr(row, name) for row in rows))


def say(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
