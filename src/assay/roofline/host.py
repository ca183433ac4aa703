"""How the host's part of a step and its kernels add up: by the engine's scheduling, and by the graphs it replays.

K: the kernels' time. A: what a scheduler does for a step (whom to run, inputs, taking in what the step before gave).
L: launching kernels one by one, 0 where a graph is replayed. R: what the device waits for under either scheduling
(copies, the draw, answers handed on). Per step, A = a + b * sequences and R = c + d * sequences.

- serial:      step = max(K, L) + A + R
- overlapped:  step = max(K, A + L) + R

Serial: a step is prepared when the one before has ended, and the device idles meanwhile; launches run ahead of the
device as soon as it has the first kernel. Overlapped: one thread prepares and launches step n + 1 while the device
computes step n, so that the longer of both sets the pace. Source: own derivation, after vLLM's asynchronous scheduling
(vllm-project/vllm#19970) and SGLang's overlap scheduler (sgl-project/sglang#2067). The constants and what each rests on
are in `assay.roofline.efficiency`.

What is ignored: workers in processes of their own, where A and L run beside each other, too; that a serial engine hides
the little that it does between its last launch and the device's end; and a front end (detokenizing, streaming) that
falls behind: it runs in another process, merges what waits, and lengthens the first token before it lengthens a step.
"""

from __future__ import annotations

from assay.records.estimate import Host, HostTime, OpTime, Range, StepEstimate
from assay.roofline import timing
from assay.roofline.ceilings import Ceilings
from assay.roofline.efficiency import HostCost

UNKNOWN = Host(why="what engines of today do by default")
NOTHING = Range(low=0.0, mid=0.0, high=0.0)


def of_engine(limits: Ceilings, host: Host) -> HostCost:
    """What a step costs that engine's host."""
    return limits.profile.hosts.get(host.engine, limits.profile.host)


def time_of(limits: Ceilings, host: Host, sequences: float, kernels: int, *, captured: bool) -> HostTime:
    """What the host does in a step.

    Args:
        limits: of the device.
        host: whose, and how.
        sequences: of the step, on one attention rank of a stage.
        kernels: that a rank runs in it.
        captured: they are replayed from a graph.
    """
    cost, each = of_engine(limits, host), max(1.0, sequences)
    return HostTime(
        ahead_s=cost.ahead_step_s,
        ahead_sequences_s=cost.ahead_sequence_s.scaled(each),
        rest_s=cost.rest_step_s,
        rest_sequences_s=cost.rest_sequence_s.scaled(each),
        launches_s=NOTHING if captured else eager_launch_s(limits, host).scaled(kernels),
    )


def eager_launch_s(limits: Ceilings, host: Host) -> Range:
    """From one kernel to the next where that engine's host launches them one by one."""
    return of_engine(limits, host).eager_launch_s or limits.profile.eager_launch_s


def ahead_s(time: HostTime) -> Range:
    """A of the formulas."""
    return timing.add(time.ahead_s, time.ahead_sequences_s)


def rest_s(time: HostTime) -> Range:
    """R of the formulas."""
    return timing.add(time.rest_s, time.rest_sequences_s)


def is_captured(host: Host, tokens: float, *, with_prompts: bool) -> bool:
    """Whether the kernels of a step of so many tokens come from a graph: of decode alone, or with prompts in it."""
    largest = host.captured_prompt_tokens if with_prompts else host.captured_decode_tokens
    if largest is not None and tokens > largest:
        return False
    return host.graphs == "all" or (host.graphs == "decode" and not with_prompts)


def step_s(kernels: Range, time: HostTime, host: Host) -> Range:
    """The whole step, by the formulas above; each end of the range from its own ends."""
    ahead, rest = ahead_s(time), rest_s(time)
    if host.scheduling == "serial":
        return timing.add(longer(kernels, time.launches_s), ahead, rest)
    return timing.add(longer(kernels, timing.add(ahead, time.launches_s)), rest)


def step_mid_s(step: StepEstimate, kernels_s: float) -> float:
    """The middle of a step whose kernels take another time."""
    if step.host is None or step.host_time is None:
        return kernels_s + step.overhead_s.mid
    return step_s(Range(low=kernels_s, mid=kernels_s, high=kernels_s), step.host_time, step.host).mid


def overhead_s(kernels: Range, time: HostTime, host: Host) -> Range:
    """What the step takes beyond its kernels."""
    return timing.add(step_s(kernels, time, host), negative(kernels))


def hidden_s(kernels: Range, time: HostTime, host: Host) -> Range:
    """What of the host's work no step gets longer by."""
    if host.scheduling == "serial":
        return NOTHING
    work = timing.add(ahead_s(time), time.launches_s)
    return Range(low=min(kernels.low, work.low), mid=min(kernels.mid, work.mid), high=min(kernels.high, work.high))


def hidden_of(step: StepEstimate) -> float:
    """The middle of what hides in a step; 0 where its host is not known."""
    if step.host is None or step.host_time is None:
        return 0.0
    return hidden_s(kernels_s(step.ops), step.host_time, step.host).mid


def sequences_s(time: HostTime, host: Host) -> Range:
    """The part of the overhead that grows with the sequences, where kernels take longer than what hides behind them."""
    return timing.add(time.rest_sequences_s, time.ahead_sequences_s if host.scheduling == "serial" else NOTHING)


def kernels_s(ops: list[OpTime]) -> Range:
    """All operations one after the other."""
    return timing.add(*(op.time_s for op in ops)) if ops else NOTHING


def calls(ops: list[OpTime]) -> int:
    """Kernels that a host without graphs would launch."""
    return sum(op.calls for op in ops)


def longer(one: Range, other: Range) -> Range:
    """End by end the larger."""
    return Range(low=max(one.low, other.low), mid=max(one.mid, other.mid), high=max(one.high, other.high))


def negative(one: Range) -> Range:
    """End by end with the other sign, to be added."""
    return Range(low=-one.low, mid=-one.mid, high=-one.high)
