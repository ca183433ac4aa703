"""The gap between a measured time and its floor, split by cause as far as there is evidence.

The parts of a time sum up to it. What a trace or the server's own counters say comes first (`measured`); where there is
neither, the roofline's expectation above the floor stands in (`predicted`), as far as the measured time has room for
it; the rest is unexplained. Nothing is distributed to make the rest look small.
"""

from __future__ import annotations

from assay.records.attribution import Attribution, Cause, Efficiency, MeasuredRun, Part, ServerTimes, TraceFacts
from assay.records.estimate import StepEstimate
from assay.roofline import host as hosts

DECODE = "time per output token"
FIRST = "time to first token"
ROUNDING = 1e-9
"""A rest below this share is none."""


def decode(
    run: MeasuredRun,
    step: StepEstimate | None,
    prefill: StepEstimate | None,
    trace: TraceFacts | None,
    *,
    prompt_s: float | None = None,
) -> Attribution | None:
    """Where the time of a decode step went; None when no such time was measured.

    Args:
        run: what was measured.
        step: the roofline of decode at the run's operating point.
        prefill: the roofline of one of its prompts.
        trace: a profile of this engine at about this load; its shares are taken, not its times, since a profiler
            slows the host down.
        prompt_s: what one of its prompts adds to a step of decode that computes it; None: prompts have steps of their
            own.
    """
    measured_s = run.tpot_s
    if measured_s is None or measured_s <= 0:
        return None
    notes: list[str] = []
    floor_s = step.floor_s if step else None
    parts = _floor(measured_s, step, notes)
    left_s = measured_s - sum(part.seconds for part in parts)
    if trace is not None:
        expected = _traced(measured_s, trace, step, notes)
    else:
        expected = _predicted(step) + _interrupted(run, prefill, prompt_s)
    parts += _fitted(expected, left_s, notes)
    return Attribution(
        what=DECODE, measured_s=measured_s, floor_s=floor_s, parts=_closed(parts, measured_s), notes=notes
    )


def first_token(
    run: MeasuredRun, prefill: StepEstimate | None, step: StepEstimate | None, server: ServerTimes | None
) -> Attribution | None:
    """Where the time to the first token went; None when it was not measured.

    Args:
        run: what was measured.
        prefill: the roofline of one prompt of the run.
        step: of the decode step that goes on meanwhile: a request waits for its end, half of it on average.
        server: its own counters over the run.
    """
    measured_s = run.ttft_s
    if measured_s is None or measured_s <= 0:
        return None
    notes: list[str] = []
    parts = _floor(measured_s, prefill, notes)
    left_s = measured_s - sum(part.seconds for part in parts)
    certain = _queueing(run, server)
    if run.client_lag_s:
        certain.append(_part("client", run.client_lag_s, "measured", "median time that bytes waited to be read"))
    if server is not None and server.prefill_s is not None and prefill is not None:
        excess_s = max(0.0, server.prefill_s - prefill.floor_s)
        said = f"{server.engine}: prefill took {_ms(server.prefill_s)}, its floor is {_ms(prefill.floor_s)}"
        certain.append(_part("kernels", excess_s, "measured", said))
        predicted: list[Part] = []
    else:
        predicted = _predicted(prefill)
    if step is not None and (run.sequences or 1) > 1:
        half_s = step.time_s.mid / 2
        predicted.append(
            _part("scheduling, CPU", half_s, "predicted", "half a decode step passes before it is taken up")
        )
    parts += _fitted([*certain, *predicted], left_s, notes)
    floor_s = prefill.floor_s if prefill else None
    return Attribution(
        what=FIRST, measured_s=measured_s, floor_s=floor_s, parts=_closed(parts, measured_s), notes=notes
    )


def efficiency(
    step: StepEstimate, tokens_per_s: float, *, peak_bytes_per_s: float, peak_flop_per_s: float
) -> Efficiency | None:
    """How much of the machine a measured decode used; None when nothing was decoded.

    Args:
        step: at the run's operating point.
        tokens_per_s: measured, over all sequences.
        peak_bytes_per_s: of memory, of all devices together.
        peak_flop_per_s: of the arithmetic that the weights are multiplied in, of all devices together.
    """
    if tokens_per_s <= 0:
        return None
    step_s = step.point.tokens / tokens_per_s
    ours = [op for op in step.ops if op.collective is None]
    devices = step.layout.devices
    return Efficiency(
        tokens_per_s=tokens_per_s,
        mbu=devices * sum(op.read_bytes for op in ours) / step_s / peak_bytes_per_s,
        mfu=devices * sum(op.flops for op in ours) / step_s / peak_flop_per_s,
        ceiling_share=tokens_per_s / step.ceiling_tokens_per_s,
    )


def _queueing(run: MeasuredRun, server: ServerTimes | None) -> list[Part]:
    """By the server's histogram, else by Little's law over the requests that it has no room for."""
    if server is not None and server.queue_s is not None:
        return [_part("queueing", server.queue_s, "measured", f"{server.engine}: mean wait in the queue")]
    if not (run.in_flight and run.sequences and run.requests_per_s) or run.in_flight <= run.sequences:
        return []
    waiting = run.in_flight - run.sequences
    said = f"{waiting:.3g} of {run.in_flight:.3g} requests wait, at {run.requests_per_s:.3g} requests/s (Little's law)"
    return [_part("queueing", waiting / run.requests_per_s, "measured", said)]


def _floor(measured_s: float, step: StepEstimate | None, notes: list[str]) -> list[Part]:
    if step is None:
        notes.append("no floor: it wants the model and the ceilings of the machine that ran it")
        return []
    if step.floor_s > measured_s:
        notes.append(
            f"measured {_ms(measured_s)} is below the floor of {_ms(step.floor_s)}: the operating point, the "
            "ceilings or the measurement is wrong"
        )
    said = f"roofline at {step.point.sequences} sequence(s), {step.bound}-bound"
    return [_part("floor", min(step.floor_s, measured_s), "predicted", said)]


def _traced(measured_s: float, trace: TraceFacts, step: StepEstimate | None, notes: list[str]) -> list[Part]:
    """The trace's shares of its span, as parts of the measured time."""
    scale = measured_s / trace.span_s
    wire_floor_s = sum(op.floor_s for op in step.ops if op.collective) if step else 0.0
    own_floor_s = (step.floor_s if step else 0.0) - wire_floor_s
    kernels_s, talk_s = scale * trace.kernels_s, scale * (trace.communication_s + trace.overlapped_s)
    if kernels_s < own_floor_s:
        notes.append(
            f"kernels in the trace take {_ms(kernels_s)} of a step, less than their floor of {_ms(own_floor_s)}: "
            "it was taken at another load, or steps without kernels are in it"
        )
    exposed_s = scale * trace.communication_s
    share = f"{100 * trace.kernels_s / trace.span_s:.0f}% of the trace"
    return [
        _part("kernels", max(0.0, kernels_s - own_floor_s), "measured", f"kernels are {share}, less their floor"),
        _part(
            "communication",
            max(0.0, exposed_s - wire_floor_s),
            "measured",
            f"{_ms(talk_s)} of collectives a step, {_ms(exposed_s)} of them alone, less their floor",
        ),
        _part(
            "launch gaps",
            scale * trace.launch_gaps_s,
            "measured",
            f"pauses up to {1e6 * trace.gap_limit_s:.0f} microseconds between kernels",
        ),
        _part("scheduling, CPU", scale * trace.idle_s, "measured", "longer pauses: the device waits for the host"),
    ]


def _predicted(step: StepEstimate | None) -> list[Part]:
    """What the roofline expects above its floor, by cause."""
    if step is None:
        return []
    excess = {
        "kernels": sum(op.time_s.mid - op.floor_s for op in step.ops if not op.collective and op.bound != "launch"),
        "communication": sum(op.time_s.mid - op.floor_s for op in step.ops if op.collective),
        "launch gaps": sum(op.time_s.mid - op.floor_s for op in step.ops if op.bound == "launch"),
    }
    words: dict[str, str] = {
        "kernels": "kernels of this kind stay so far above their floor",
        "communication": "collectives stay so far above their floor",
        "launch gaps": f"{sum(op.calls for op in step.ops):,} operations a step",
    }
    parts = [_part(_cause(name), seconds, "predicted", words[name]) for name, seconds in excess.items()]
    return [*parts, _part("scheduling, CPU", step.overhead_s.mid, "predicted", _host_words(step))]


def _host_words(step: StepEstimate) -> str:
    """Which part of the host's work the device is taken to wait for."""
    if step.host is None or step.host_time is None or step.host.scheduling == "serial":
        return "the host's part of a step, added to its kernels"
    hidden_s = hosts.hidden_of(step)
    return f"what the device waits for the host; {_ms(hidden_s)} more hide behind its kernels (overlapped scheduling)"


def _interrupted(run: MeasuredRun, prefill: StepEstimate | None, prompt_s: float | None) -> list[Part]:
    """Prompts of other requests between two steps, or in them: as many a step as answers end in it."""
    if prefill is None or not run.sequences or not run.output_tokens or run.sequences <= 1:
        return []
    prompts = (run.sequences - 1) / run.output_tokens
    each_s, where = (
        (prefill.time_s.mid, "each") if prompt_s is None else (prompt_s, "more for each, in steps of decode")
    )
    said = f"{prompts:.2g} prompts a step of {prefill.point.new_tokens} tokens, {_ms(each_s)} {where}"
    return [_part("prefill in between", prompts * each_s, "predicted", said)]


def _fitted(expected: list[Part], left_s: float, notes: list[str]) -> list[Part]:
    """Measured parts as they are, then predicted ones as far as there is room for them."""
    firm = [part for part in expected if part.basis == "measured"]
    firm = _shrunk(firm, max(0.0, left_s), notes, "what was measured beside the floor")
    room_s = max(0.0, left_s - sum(part.seconds for part in firm))
    soft = [part for part in expected if part.basis == "predicted"]
    return firm + _shrunk(soft, room_s, notes, "what was predicted above the floor")


def _shrunk(parts: list[Part], room_s: float, notes: list[str], what: str) -> list[Part]:
    total_s = sum(part.seconds for part in parts)
    if total_s <= room_s or total_s <= 0:
        return parts
    notes.append(f"{what} sums up to {_ms(total_s)} where {_ms(room_s)} are left: scaled to fit")
    return [part.model_copy(update={"seconds": part.seconds * room_s / total_s}) for part in parts]


def _closed(parts: list[Part], measured_s: float) -> list[Part]:
    """With the rest, so that they sum up; what takes no time is left out."""
    shown = [part for part in parts if part.seconds > 0]
    rest_s = measured_s - sum(part.seconds for part in shown)
    if rest_s > ROUNDING * measured_s:
        shown.append(_part("unexplained", rest_s, "rest", "nothing at hand accounts for it"))
    return shown


def _part(cause: Cause, seconds: float, basis: str, evidence: str) -> Part:
    return Part.model_validate({"cause": cause, "seconds": seconds, "basis": basis, "evidence": evidence})


def _cause(name: str) -> Cause:
    causes: dict[str, Cause] = {"kernels": "kernels", "communication": "communication", "launch gaps": "launch gaps"}
    return causes[name]


def _ms(seconds: float) -> str:
    """`12.3 ms`, `1.48 s`: three digits, never an exponent."""
    return f"{1000 * seconds:.3g} ms" if seconds < 0.9995 else f"{seconds:.3g} s"  # noqa: PLR2004 - rounds to 1000 ms
