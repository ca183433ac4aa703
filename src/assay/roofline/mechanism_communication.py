"""Mechanisms that make collectives faster, smaller, or hide them."""

from __future__ import annotations

from assay.records.estimate import MechanismCeiling, OpTime, Range
from assay.roofline import collectives, communication
from assay.roofline.mechanism_scene import MIB_BYTES, About, Scene, fastest, floors, ms, size, total

MSCCLPP_WORLDS = (8, 16)
"""World sizes that SGLang's MSCCL++ path accepts (sglang 0.5.8, pymscclpp.py)."""
MSCCLPP_MAX_BYTES = MIB_BYTES
"""Messages above go to NCCL: SGLANG_MSCCLPP_MAX_BYTES, 1 MiB by default (same source)."""
LEAST_LATENCY_S = 6e-6
"""No all-reduce of eight devices over PCIe is faster: p2pmark's effective latency is 6.0 to 7.4 us
(voipmonitor/rtx6kpro, hardware/pcie-bandwidth.md). Over NVLink it is assumed."""
ONE_SHOT_MAX_BYTES = MIB_BYTES
"""Each rank reads every other rank's whole message: worth it for small ones only. Assumed where no curve says it."""


def mscclpp(scene: Scene) -> MechanismCeiling:
    """MSCCL++ for small all-reduces."""
    about = About(id="mscclpp", title="MSCCL++ all-reduce", touched=scene.collectives("all_reduce"), scene=scene)
    world = scene.layout.tp
    if world not in MSCCLPP_WORLDS:
        return about.inert(f"it needs 8 or 16 ranks in the all-reduce, here are {world}")
    return _small_messages(about, "mscclpp", MSCCLPP_MAX_BYTES, "MSCCL++")


def one_shot(scene: Scene) -> MechanismCeiling:
    """Every rank reads what the others have and adds it up itself: one hop instead of a ring."""
    about = About(
        id="one-shot-all-reduce", title="One-shot all-reduce", touched=scene.collectives("all_reduce"), scene=scene
    )
    if scene.layout.tp <= 1:
        return about.inert("there is no all-reduce: one rank")
    return _small_messages(about, "one-shot", ONE_SHOT_MAX_BYTES, "a one-shot kernel")


def _small_messages(about: About, algorithm: str, limit: float, name: str) -> MechanismCeiling:
    """What an algorithm for small messages saves: by its curve where one is known, else down to the wire."""
    scene = about.scene
    message = max((op.message_bytes or 0.0 for op in about.touched), default=0.0)
    token = message / max(scene.step.point.tokens / scene.layout.dp / scene.layout.pp, 1)
    curve = next((one for one in scene.box.curves if one.algorithm == algorithm and one.world == scene.layout.tp), None)
    limit = min(limit, (curve.max_message_bytes or limit) if curve else limit)
    if message > limit:
        return about.inert(
            f"each all-reduce is {size(message)} and {name} takes at most {size(limit)}: it is never used above "
            f"{int(limit / token):,} tokens a step, and this step has {scene.step.point.tokens:,}"
        )
    if curve is None:
        calls = sum(op.calls for op in about.touched)
        saved = max(0.0, total(about.touched) - floors(about.touched) - calls * LEAST_LATENCY_S)
        return about.saves(
            Range(low=0.0, mid=0.3 * saved, high=saved),
            f"no curve of it is known here: at most the {ms(saved)} that {calls} all-reduces of {size(message)} take "
            f"above the wire and {LEAST_LATENCY_S * 1e6:.0f} us each",
        )
    faster = scene.again(algorithms={*communication.DEFAULT_ALGORITHMS, algorithm})
    saved = total(about.touched) - total([op for op in faster.ops if op.collective == "all_reduce"])
    if saved <= 0:
        return about.inert(f"its curve is not faster than the one in use for messages of {size(message)}")
    return about.saves(
        Range(low=0.5 * saved, mid=saved, high=max(saved, total(about.touched) - fastest(about.touched))),
        f"its curve takes {ms(saved)} off {sum(op.calls for op in about.touched)} all-reduces of {size(message)}",
    )


def quantized(scene: Scene) -> MechanismCeiling:
    """Eight bits on the wire instead of sixteen."""
    touched = scene.collectives("all_reduce")
    about = About(id="quantized-all-reduce", title="Quantized all-reduce (8 bit)", touched=touched, scene=scene)
    if not touched:
        return about.inert("there is no all-reduce in this layout")
    empty = sum(
        op.calls * communication.collective_s(scene.box, "all_reduce", scene.layout.tp, 1.0)[0].mid for op in touched
    )
    wire = max(0.0, total(touched) - empty)
    return about.saves(
        Range(low=0.1 * wire, mid=0.35 * wire, high=0.5 * wire),
        f"{ms(wire)} of the {ms(total(touched))} of all-reduce grow with the message, and half of that is saved; "
        "changes sums slightly",
    )


def fused_norm(scene: Scene) -> MechanismCeiling:
    """All-reduce and the norm behind it in one kernel."""
    touched = scene.ops("elementwise.norm")
    about = About(id="fuse-allreduce-rmsnorm", title="All-reduce fused with the norm", touched=touched, scene=scene)
    if not scene.collectives("all_reduce"):
        return about.inert("there is no all-reduce in this layout")
    if not communication.has_fabric(scene.box):
        return about.inert(
            f"such kernels need a fabric of NVLink's class, the link here is {scene.box.device.link or 'unknown'}; "
            f"norms take {ms(total(touched))}"
        )
    saved = total(touched)
    return about.saves(Range(low=0.0, mid=0.5 * saved, high=saved), f"norms take {ms(saved)} and could ride along")


def single_batch_overlap(scene: Scene) -> MechanismCeiling:
    """Shared expert behind dispatch, down projection before combine."""
    comm = [op for op in scene.ops("communication") if op.collective == "all_to_all"]
    hidden = scene.ops("shared_experts", "routed_experts.down")
    about = About(id="single-batch-overlap", title="Single batch overlap", touched=comm, scene=scene)
    if not scene.shape.is_moe:
        return about.inert("the model has no experts")
    if not comm:
        return about.inert(
            f"{scene.layout.name} makes no dispatch or combine that could be hidden ({_instead(scene)}): without an "
            "all-to-all back end and EP the flag changes nothing"
        )
    saved = min(total(comm), total(hidden))
    return about.saves(
        Range(low=0.0, mid=0.4 * saved, high=saved),
        f"of {ms(total(comm))} of dispatch and combine at most what shared experts and down projections "
        f"({ms(total(hidden))}) can cover",
    )


def two_batch_overlap(scene: Scene) -> MechanismCeiling:
    """One half of the batch communicates while the other computes."""
    comm = scene.ops("communication")
    about = About(id="two-batch-overlap", title="Two-batch overlap", touched=comm, scene=scene)
    point = scene.step.point
    if not comm:
        return about.inert("there is no communication to hide")
    half = _halves(scene)
    ideal = _overlapped(scene, half)
    words = (
        f"halving the batch makes computing take {ms(2 * (half.time_s - half.comm_s))} instead of "
        f"{ms(scene.time_s - total(comm))}, behind which {ms(2 * half.comm_s)} of communication could hide"
    )
    worth = scene.time_s / ideal - 1
    if point.sequences < 2:  # noqa: PLR2004 - two halves
        return about.inert("one sequence cannot be halved")
    if not collectives.uses_all_to_all(scene.box, scene.layout):
        return about.inert(
            f"engines demand an all-to-all back end, and {scene.layout.name} on {scene.box.device.link or 'this link'} "
            f"has none ({_instead(scene)}); if it could act: {words}, at most {worth:+.0%}"
        )
    if worth <= 0:
        return about.inert(f"{words}: slower at best")
    saved = scene.time_s - ideal
    return about.saves(Range(low=0.0, mid=0.4 * saved, high=saved), words)


class _Half:
    """A step of half the batch."""

    def __init__(self, time_s: float, comm_s: float) -> None:
        self.time_s = time_s
        self.comm_s = comm_s


def _halves(scene: Scene) -> _Half:
    half = scene.again(point=scene.at_sequences(max(1, scene.step.point.sequences // 2)))
    return _Half(half.time_s.mid, total([op for op in half.ops if op.part == "communication"]))


def _overlapped(scene: Scene, half: _Half) -> float:
    """Both halves, with the shorter of computing and communicating hidden but for its last part."""
    compute = 2 * (half.time_s - half.comm_s) - scene.step.overhead_s.mid
    return max(compute, 2 * half.comm_s) + scene.step.overhead_s.mid


def _instead(scene: Scene) -> str:
    kinds = sorted({str(op.collective) for op in _moe_collectives(scene)})
    return f"it communicates by {', '.join(kinds) or 'nothing'}"


def _moe_collectives(scene: Scene) -> list[OpTime]:
    return [op for op in scene.ops("communication") if op.collective and op.calls > 1]
