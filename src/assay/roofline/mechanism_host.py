"""Mechanisms that take the host off the path, and their controls, which put it there: scheduling and captured graphs.

Each is the same step under another `Host` (`assay.roofline.host`), with usual kernels; its range is that of what the
host costs. A control's gain is below zero: what a campaign would lose that switches it.
"""

from __future__ import annotations

import math

from assay.records.estimate import Graphs, Host, MechanismCeiling, OpTime, Range, Scheduling, StepEstimate
from assay.roofline import host as hosts
from assay.roofline.mechanism_scene import NOTHING, About, Scene, ms

SERIAL_ID, NO_GRAPHS_ID, DECODE_GRAPHS_ID = "serial-scheduling", "no-graphs", "graphs-for-decode-alone"
CONTROLS = frozenset({SERIAL_ID, NO_GRAPHS_ID, DECODE_GRAPHS_ID})
NO_OPS: list[OpTime] = []


def async_scheduling(scene: Scene) -> MechanismCeiling:
    """The host prepares the next step while the device computes this one."""
    about = About(id="async-scheduling", title="Overlapped scheduling", touched=NO_OPS, scene=scene, host=True)
    host, time = scene.step.host, scene.step.host_time
    if host is None or time is None or not hosts.ahead_s(time).high:
        return about.inert("nothing is prepared that could be hidden")
    if host.scheduling == "overlapped":
        serial = _step_s(scene.step, scheduling="serial").mid
        return about.inert(f"in use ({host.why}): without it a step would take {ms(serial)} instead of {_whole(scene)}")
    saved = _less(scene.step, _step_s(scene.step, scheduling="overlapped"))
    return about.saves(
        saved,
        f"for {ms(hosts.ahead_s(time).mid)} of a step the device is expected to wait for the host ({host.why}); hidden "
        f"behind {ms(hosts.kernels_s(scene.step.ops).mid)} of kernels they leave {ms(scene.time_s - saved.mid)}",
    )


def serial_scheduling(scene: Scene) -> MechanismCeiling:
    """A control: the host prepares a step when the one before it has ended."""
    about = About(id=SERIAL_ID, title="Overlapped scheduling off (a control)", touched=NO_OPS, scene=scene, host=True)
    host, time = scene.step.host, scene.step.host_time
    if host is None or time is None or not hosts.ahead_s(time).high:
        return about.inert("nothing is prepared that could be hidden")
    if host.scheduling == "serial":
        return about.inert(f"scheduling is serial ({host.why})")
    after = _step_s(scene.step, scheduling="serial")
    return about.loses(
        after, f"{ms(hosts.ahead_s(time).mid)} of the host's work a step come into sight: {ms(after.mid)} instead of "
        f"{_whole(scene)}",
    )  # fmt: skip


def no_graphs(scene: Scene) -> MechanismCeiling:
    """A control: the host launches every kernel."""
    about = About(id=NO_GRAPHS_ID, title="CUDA graphs off (a control)", touched=NO_OPS, scene=scene, host=True)
    host = scene.step.host
    if host is None or scene.step.host_time is None or scene.step.host_time.launches_s.high:
        return about.inert("no graphs are in use")
    after = _step_s(_launched(scene.step, scene, hosts.calls(scene.step.ops)))
    return about.loses(after, f"{_launch_words(scene)}: {ms(after.mid)} instead of {_whole(scene)}")


def graphs_for_decode_alone(
    scene: Scene, mixed: StepEstimate | None, prompts_per_step: float | None
) -> MechanismCeiling:
    """A control: steps with a prompt in them are launched kernel by kernel.

    Prompts come independently of each other, so that a step has some with the chance 1 - exp(-prompts per step).

    Args:
        scene: of a step of decode.
        mixed: the same with one prompt in it, from a graph; None: the engine computes prompts apart.
        prompts_per_step: on average.
    """
    about = About(
        id=DECODE_GRAPHS_ID, title="CUDA graphs for decode alone (a control)", touched=NO_OPS, scene=scene, host=True
    )
    host = scene.step.host
    if mixed is None or mixed.host_time is None or not prompts_per_step:
        return about.inert("no step of decode has a prompt in it")
    if host is None or mixed.host_time.launches_s.high:
        return about.inert("steps with prompts have no graphs")
    share = -math.expm1(-prompts_per_step)
    after = _step_s(_launched(mixed, scene, hosts.calls(mixed.ops)))
    before = (1 - share) * scene.time_s + share * mixed.time_s.mid
    whole = [before + share * (end - mixed.time_s.mid) for end in (after.low, after.mid, after.high)]
    return about.loses(
        Range(low=whole[0], mid=whole[1], high=whole[2]),
        f"{share:.0%} of the steps have a prompt in them; {_launch_words(scene)}: {ms(after.mid)} for such a step "
        f"instead of {ms(mixed.time_s.mid)}",
        before_s=before,
    )


def graphs(scene: Scene) -> MechanismCeiling:
    """Captured graphs instead of launches by the host: what they save a step that has none.

    Steps of prompts count as such, whatever the estimate takes of them: not every engine captures them.
    """
    touched = [op for op in scene.step.ops if op.collective is None]
    about = About(id="cuda-graphs", title="CUDA graphs", touched=touched, scene=scene)
    host, is_prompt = scene.step.host, scene.step.point.phase == "prefill"
    if host is None or scene.step.host_time is None:
        return about.inert("nothing is launched kernel by kernel")
    launched = _step_s(_launched(scene.step, scene, hosts.calls(scene.step.ops)))
    if not is_prompt and not scene.step.host_time.launches_s.high:
        return about.inert(
            f"the estimate replays graphs already; {_launch_words(scene)}, against a step of {_whole(scene)}: "
            f"without graphs a step would take {ms(launched.mid)}"
        )
    replayed = _step_s(_launched(scene.step, scene, 0))
    gains = sorted(getattr(launched, end) / getattr(replayed, end) - 1 for end in ("low", "mid", "high"))
    words = f"{_launch_words(scene)}: {ms(launched.mid)} a step, {ms(replayed.mid)} from a graph"
    if not gains[2]:
        return about.inert(f"{words}: kernels hide it")
    return about.saves(NOTHING, words).model_copy(update={"gain": Range(low=gains[0], mid=gains[1], high=gains[2])})


def _step_s(step: StepEstimate, *, scheduling: Scheduling | None = None) -> Range:
    """The step with usual kernels, and each end of what the host costs, under this or another scheduling."""
    host, time = step.host or Host(), step.host_time
    assert time is not None
    usual = hosts.kernels_s(step.ops).mid
    kernels = Range(low=usual, mid=usual, high=usual)
    rest = hosts.rest_s(time).mid
    fixed = time.model_copy(
        update={"rest_s": Range(low=rest, mid=rest, high=rest), "rest_sequences_s": NOTHING}
    )  # what the device waits for in any case is the same before and after
    return hosts.step_s(kernels, fixed, host.model_copy(update={"scheduling": scheduling or host.scheduling}))


def _launched(step: StepEstimate, scene: Scene, calls: int) -> StepEstimate:
    """The same step, its kernels launched one by one."""
    assert step.host_time is not None
    launches = hosts.eager_launch_s(scene.limits, step.host or Host()).scaled(calls)
    graphs: Graphs = "none"
    host = (step.host or Host()).model_copy(update={"graphs": graphs})
    return step.model_copy(
        update={"host": host, "host_time": step.host_time.model_copy(update={"launches_s": launches})}
    )


def _launch_words(scene: Scene) -> str:
    calls = hosts.calls(scene.step.ops)
    eager = hosts.eager_launch_s(scene.limits, scene.step.host or Host()).scaled(calls)
    return f"launched one by one, {calls:,} kernels keep the host busy for {ms(eager.low)} to {ms(eager.high)}"


def _less(step: StepEstimate, after: Range) -> Range:
    saved = sorted(step.time_s.mid - end for end in (after.low, after.mid, after.high))
    return Range(low=max(0.0, saved[0]), mid=max(0.0, step.time_s.mid - after.mid), high=max(0.0, saved[2]))


def _whole(scene: Scene) -> str:
    return ms(scene.time_s)
