"""Stand-ins to prices: what each change would take off a step, with a range, before anybody builds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.records.device import LinkCurve
from assay.records.estimate import Range, StepEstimate
from assay.records.lab import Price
from assay.roofline import communication

HIDDEN_SHARE = Range(low=0.5, mid=0.8, high=1.0)
"""Of communication that computation can hide where no overlap was measured. Assumed."""
FUSED_SHARE = Range(low=0.5, mid=0.9, high=1.0)
"""Of the activation's pass that a fused epilogue really saves: it holds two tiles of sums at once. Assumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What prices are calculated from."""

    rows: Sequence[Mapping[str, Any]]
    """Lines of the program."""
    step: StepEstimate
    step_s: float
    tokens: int
    moe_layers: int
    layers: int
    hidden: int
    world: int
    curves: Sequence[LinkCurve]

    def time(self, name: str, *, at_tokens: bool = True) -> Range | None:
        """Quartiles and median of a stand-in; None when it was not measured."""
        row = self._row(name, at_tokens=at_tokens)
        return None if row is None else Range(low=row["low_s"], mid=row["time_s"], high=row["high_s"])

    def words(self, name: str, *, at_tokens: bool = True) -> str:
        """What was measured."""
        row = self._row(name, at_tokens=at_tokens)
        return "" if row is None else str(row["what"])

    def reason(self, name: str) -> str:
        """Why it was not measured."""
        return next(
            (f"{name}: {row['problem']}" for row in self.rows if row.get("name") == name and "problem" in row),
            f"{name}: not measured",
        )

    def _row(self, name: str, *, at_tokens: bool) -> Mapping[str, Any] | None:
        tokens = self.tokens if at_tokens else None
        named = (row for row in self.rows if row.get("name") == name and "time_s" in row)
        return next((row for row in named if row["tokens"] == tokens), None)

    def price(self, ident: str, title: str, saved: Range, stand_in: str) -> Price:
        """Of one step."""
        return Price(id=ident, title=title, saved_s=saved, step_s=self.step_s, tokens=self.tokens, stand_in=stand_in)

    def unknown(self, ident: str, title: str, why: str) -> Price:
        """It could not be priced."""
        return Price(id=ident, title=title, step_s=self.step_s, tokens=self.tokens, problem=why)


def prices(scene: Scene) -> list[Price]:
    """Every change, largest expected saving first, those without a price last."""
    found = [make(scene) for make in (persistent, activation, pinning, single_batch, two_batch, one_shot)]
    return sorted(found, key=lambda one: -(one.saved_s.mid if one.saved_s else -1e9))


def persistent(scene: Scene) -> Price:
    """At best the experts take as long as reading their weights; in the middle, what our own kernel saves."""
    ident, title = "persistent-kernel", "Persistent experts kernel"
    now, stream, ours = scene.time("experts"), scene.time("stream"), scene.time("ours")
    if now is None or stream is None:
        return scene.unknown(ident, title, scene.reason("experts" if now is None else "stream"))
    most = max(0.0, now.mid - stream.mid)
    middle = now.mid - ours.mid if ours is not None else 0.5 * most
    low, mid, high = sorted((0.0 if ours is None else now.low - ours.high, middle, max(most, middle)))
    built = f"; ours takes {ours.mid * 1e6:.0f} us" if ours is not None else ""
    words = (
        f"{scene.words('experts')}: {now.mid * 1e6:.0f} us; {scene.words('stream')}: {stream.mid * 1e6:.0f} us{built}"
    )
    return scene.price(ident, title, Range(low=low, mid=mid, high=high).scaled(scene.moe_layers), words)


def activation(scene: Scene) -> Price:
    """The pass between the two products goes into the first one's epilogue."""
    ident, title = "fused-activation", "Activation fused into the gate-up product"
    taken = scene.time("activation")
    if taken is None:
        return scene.unknown(ident, title, scene.reason("activation"))
    each = Range(low=FUSED_SHARE.low * taken.low, mid=FUSED_SHARE.mid * taken.mid, high=FUSED_SHARE.high * taken.high)
    return scene.price(ident, title, each.scaled(scene.moe_layers), scene.words("activation"))


def pinning(scene: Scene) -> Price:
    """What lies in the set-aside part is read once a step, from the cache instead of the memory."""
    ident, title = "l2-persistence", "Part of the weights kept in the L2"
    saved = scene.time("l2-persistence", at_tokens=False)
    if saved is None:
        return scene.unknown(ident, title, scene.reason("l2-persistence"))
    return scene.price(ident, title, saved, scene.words("l2-persistence", at_tokens=False))


def single_batch(scene: Scene) -> Price:
    """Shared experts beside the routed ones, on a stream of their own."""
    ident, title = "single-batch-overlap", "Shared experts beside the routed ones"
    routed, shared, both = (scene.time(name) for name in ("experts", "shared", "together"))
    if routed is None or shared is None or both is None:
        missing = next(
            name for name, one in (("experts", routed), ("shared", shared), ("together", both)) if one is None
        )
        return scene.unknown(ident, title, scene.reason(missing))
    saved = sorted(
        (routed.low + shared.low - both.high, routed.mid + shared.mid - both.mid, routed.high + shared.high - both.low)
    )
    words = (
        f"routed {routed.mid * 1e6:.0f} us, shared {shared.mid * 1e6:.0f} us, together {both.mid * 1e6:.0f} us a layer"
    )
    return scene.price(ident, title, Range(low=saved[0], mid=saved[1], high=saved[2]).scaled(scene.moe_layers), words)


def two_batch(scene: Scene) -> Price:
    """Two halves of the batch hide each other's communication, and each half reads its experts' weights anew."""
    ident, title = "two-batch-overlap", "Two half batches in turn"
    whole, half = scene.time("experts"), scene.time("half")
    if whole is None or half is None:
        return scene.unknown(ident, title, scene.reason("experts" if whole is None else "half"))
    talking = sum(op.time_s.mid for op in scene.step.ops if op.collective is not None)
    cost = (2 * half.mid - whole.mid) * scene.moe_layers
    saved = [share * talking - cost for share in (HIDDEN_SHARE.low, HIDDEN_SHARE.mid, HIDDEN_SHARE.high)]
    words = (
        f"experts at {scene.tokens} tokens {whole.mid * 1e6:.0f} us, at half of them {half.mid * 1e6:.0f} us; "
        f"communication of a step {talking * 1e3:.2f} ms (estimated), of which {HIDDEN_SHARE.low:.0%} to "
        f"{HIDDEN_SHARE.high:.0%} is hidden (assumed)"
    )
    return scene.price(ident, title, Range(low=saved[0], mid=saved[1], high=saved[2]), words)


def one_shot(scene: Scene) -> Price:
    """One exchange for each of the two sums of a layer."""
    ident, title = "one-shot-all-reduce", "One-shot all-reduce"
    message = 2.0 * scene.tokens * scene.hidden
    measured = {
        each.algorithm: communication.curve_s(each, message)
        for each in scene.curves
        if each.collective == "all_reduce" and each.basis == "measured" and each.world == scene.world
    }
    if scene.world < 2:  # noqa: PLR2004 - one rank has nobody to tell
        return scene.unknown(ident, title, "one rank sums nothing")
    if "nccl" not in measured or "one-shot" not in measured:
        return scene.unknown(
            ident, title, f"all-reduces between {scene.world} GPUs were not measured here: it takes as many GPUs"
        )
    each = measured["nccl"] - measured["one-shot"]
    saved = Range(low=0.75 * each, mid=each, high=1.25 * each) if each > 0 else Range(low=each, mid=each, high=each)
    words = (
        f"{message / 1024:.0f} KiB between {scene.world} GPUs: NCCL {measured['nccl'] * 1e6:.1f} us, "
        f"one-shot {measured['one-shot'] * 1e6:.1f} us"
    )
    return scene.price(ident, title, saved.scaled(2 * scene.layers), words)
