"""From played campaigns to the tables of docs/verdicts.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean

from benchmarks.verdicts import fixed
from benchmarks.verdicts.box import DRIFTS, Box, shuffled
from benchmarks.verdicts.figures import clustered_share, mean, share, table
from benchmarks.verdicts.guards import shares as guard_shares
from benchmarks.verdicts.kept import Kept
from benchmarks.verdicts.leaks import LAWS, alarms
from benchmarks.verdicts.looks import runs_of_screen, screen
from benchmarks.verdicts.ours import Cell, Played, Stage
from benchmarks.verdicts.rivals import Decided, best_of_sweep, keep_and_confirm
from benchmarks.verdicts.soak_errors import SHARES, ended
from benchmarks.verdicts.soak_falls import FALLS, fallen
from benchmarks.verdicts.studies import (
    MULTIPLES,
    POWER_BOXES,
    SAVINGS,
    SAVINGS_MULTIPLES,
    SDS,
    WORTHS,
    detectable,
    fast_drifts,
    mix,
    null_cell,
    power_cell,
    savings_cell,
)

from assay.records.spec import Budget

Rival = Callable[[Sequence[float], Box], Decided]
RIVAL_CAMPAIGNS = 2000
DRIFT_NAMES = {"none": "none", "linear": "rises by 2%", "walk": "random walk, 2%"}
FAST_NAMES = {"linear": "rises by 2% in 21 runs", "walk": "random walk, 2% in 21 runs"}
LAW_NAMES = {"normal": "normal", "t4": "t, 4 degrees"}
LOOK_CAMPAIGNS = 500
MOST_POWER = 0.995
"""More is not asked of the fixed design, where every one of our campaigns found it."""
LOOK_CANDIDATES = 8
SOAKED_ARMS = 4000
FALLEN_CAMPAIGNS = 1000
LEAK_SERVERS, LEAK_LOOKS = 2000, (24, 60)
"""A quick soak of four seconds has 24 samples and more, one of ten seconds or more about 60."""
GUARD_CANDIDATES = 1000
GUARD_ALLOWED = 0.05
GUARD_SDS, GUARD_LOSSES = (0.005, 0.01, 0.03), (0.0, 0.02, 0.05, 0.08)
OUR_CONFIRMATION = 2 * Budget().confirmation_brackets + 1
STAGES: tuple[Stage, ...] = ("screen", "composition", "confirmation")


def nulls(kept: Kept) -> str:
    """Campaigns that adopt anything useless."""
    rows = [_null_row(kept, DRIFT_NAMES[d], [null_cell(sd, w, d) for w in WORTHS]) for sd in SDS for d in DRIFTS]
    rows += [_null_row(kept, FAST_NAMES[cell.drift], [cell]) for cell in fast_drifts()]
    head = ["run noise", "drift", "Assay, worth 1%", "runs", "Assay, worth 5%"]
    return table([*head, "keep 1%, confirm 0.5%", "best of sweep"], rows)


def _null_row(kept: Kept, drift: str, cells: list[Cell]) -> list[str]:
    ours = [list(kept.of(cell).values()) for cell in cells]
    return [
        f"{100 * cells[0].sd:g}%",
        drift,
        _adopting(ours[0]),
        _runs(ours[0]),
        _adopting(ours[1]) if len(ours) > 1 else "-",
        _rival_adopting(keep_and_confirm, cells[0]),
        _rival_adopting(best_of_sweep, cells[0]),
    ]


def _adopting(played: list[Played]) -> str:
    return f"{share(sum(bool(p.adopted) for p in played), len(played))} of {len(played)}"


def _runs(played: list[Played]) -> str:
    return f"{fmean(p.runs for p in played):.0f}" if played else "-"


def rival_campaigns(rule: Rival, cell: Cell) -> list[tuple[Decided, list[float]]]:
    """Every seed's decision, with the true effects in the order of measuring; the drift totals over these runs."""
    found = []
    for seed in range(RIVAL_CAMPAIGNS):
        effects = shuffled(cell.effects, seed)
        found.append((rule(effects, cell.box(seed, len(effects) + 1)), effects))
    return found


def _rival_adopting(rule: Rival, cell: Cell) -> str:
    decided = rival_campaigns(rule, cell)
    return share(sum(bool(one.adopted) for one, _ in decided), len(decided))


def power(kept: Kept) -> str:
    """One gain of a multiple of the minimum detectable effect among nine useless flags."""
    rows = []
    for sd, worth in POWER_BOXES:
        for multiple in MULTIPLES:
            cell = power_cell(sd, worth, multiple)
            played = list(kept.of(cell).values())
            gain = max(cell.effects)
            found = sum(gain in p.adopted for p in played)
            rows.append(
                [
                    f"{100 * sd:g}%",
                    f"{100 * worth:g}%",
                    f"{multiple}x ({100 * multiple * detectable(sd):.1f}%)",
                    str(len(played)),
                    share(found, len(played)) if multiple else "-",
                    share(sum(any(e <= 0 for e in p.adopted) for p in played), len(played)),
                    mean([float(p.runs) for p in played], 1),
                    mean([float(t.brackets) for p in played for t in p.told if t.stage == "screen" and t.true == gain]),
                ]
            )
    head = ["run noise", "worth", "true gain", "campaigns", "adopted, %", "any useless adopted, %", "runs"]
    return table([*head, "brackets of it in the screen"], rows)


def economy(kept: Kept) -> str:
    """Runs against the cheapest fixed design that has our power."""
    rows = []
    for sd, worth in POWER_BOXES:
        for at in (1, 2):
            played = list(kept.of(power_cell(sd, worth, at)).values())
            effects = power_cell(sd, worth, at).effects
            if not played:
                continue
            found = sum(max(effects) in p.adopted for p in played)
            reached = found / len(played)
            design = fixed.cheapest(effects, sd=sd, min_effect=worth, power=min(reached, MOST_POWER))
            if design is None:
                continue
            pairs = (design.screen_pairs, design.again_pairs)
            for multiple in MULTIPLES:
                cell = power_cell(sd, worth, multiple)
                ours, theirs = _cost(kept.of(cell).values()), _fixed_cost(cell, pairs)
                rows.append(
                    [
                        f"{100 * sd:g}%, {100 * worth:g}%",
                        f"{at}x: {100 * design.power:.1f} (ours {100 * reached:.1f})",
                        f"{pairs[0]} + {pairs[1]}",
                        f"{multiple}x",
                        *(f"{mine:.1f} / {its:.1f}" for mine, its in zip(ours, theirs, strict=True)),
                        *(f"{100 * (1 - mine / its):.0f}%" for mine, its in zip(ours, theirs, strict=True)),
                    ]
                )
    head = ["run noise, worth", "equal power at, %", "its pairs in screen + again", "true gain"]
    return table([*head, "runs of trials, ours / its", "of campaigns", "fewer in trials", "in campaigns"], rows)


def _cost(played: Iterable[Played]) -> tuple[float, float]:
    """Mean runs: of the trials alone (screen and composition), and of whole campaigns."""
    played = list(played)
    outside = fmean(fixed.calibration_runs() + OUR_CONFIRMATION * bool(p.adopted) for p in played)
    whole = fmean(p.runs for p in played)
    return whole - outside, whole


def _fixed_cost(cell: Cell, pairs: tuple[int, int]) -> tuple[float, float]:
    return fixed.mean_runs(cell.effects, sd=cell.sd, min_effect=cell.min_effect, pairs=pairs)


def coverage(kept: Kept) -> str:
    """Of the intervals that campaigns recorded when they stopped, and at the worst look."""
    rows = []
    for cell in mix():
        played = list(kept.of(cell).values())
        worst = [_worst(cell, seed) for seed in range(LOOK_CAMPAIGNS)]
        rows.append(
            [
                LAW_NAMES[cell.law],
                DRIFT_NAMES[cell.drift],
                str(len(played)),
                *(_covered(played, stage) for stage in STAGES),
                clustered_share(worst, [LOOK_CANDIDATES] * len(worst)),
            ]
        )
    head = ["noise", "drift", "campaigns", "screen (90)", "composition (95 or more)", "headline (95)"]
    return table([*head, "screen, every look (90)"], rows)


def _covered(played: list[Played], stage: Stage) -> str:
    per_campaign = [[t.covers for t in p.told if t.stage == stage] for p in played]
    return clustered_share([sum(one) for one in per_campaign], [len(one) for one in per_campaign])


def _worst(cell: Cell, seed: int) -> int:
    length = len(runs_of_screen(LOOK_CANDIDATES, Budget()))
    missed = screen(LOOK_CANDIDATES, cell.box(seed, length))
    return missed.candidates - missed.at_some_look


def headline(kept: Kept) -> str:
    """Claimed minus true gain, in percentage points of the log ratio."""
    rows = []
    for cell in mix():
        where = [LAW_NAMES[cell.law], DRIFT_NAMES[cell.drift]]
        ours = [(p.claimed, p.true, any(e <= 0 for e in p.adopted)) for p in kept.of(cell).values() if p.adopted]
        rows.append([*where, "Assay", *_honesty(ours, len(kept.of(cell)))])
        for name, rule in (("keep 1%, confirm 0.5%", keep_and_confirm), ("best of sweep", best_of_sweep)):
            decided = rival_campaigns(rule, cell)
            theirs = [_reported(one, effects) for one, effects in decided if one.adopted]
            rows.append([*where, name, *_honesty(theirs, len(decided))])
    head = ["noise", "drift", "rule", "campaigns with a claim", "claimed", "true", "claimed - true"]
    return table([*head, "with something useless or harmful, %"], rows)


def _reported(one: Decided, effects: list[float]) -> tuple[float, float, bool]:
    true = [effects[place] for place in one.adopted]
    return one.claimed, sum(true), any(effect <= 0 for effect in true)


def _honesty(claims: list[tuple[float, float, bool]], campaigns: int) -> list[str]:
    return [
        f"{len(claims)} of {campaigns}",
        mean([100 * claimed for claimed, _, _ in claims]),
        mean([100 * true for _, true, _ in claims]),
        mean([100 * (claimed - true) for claimed, true, _ in claims]),
        share(sum(useless for _, _, useless in claims), len(claims)),
    ]


def savings(kept: Kept) -> str:
    """What giving up and longer blocks bring."""
    names = ("neither", "giving up", "giving up, blocks of three", "giving up, blocks of four (the default)")
    rows = []
    for name, (block, below) in zip(names, SAVINGS, strict=True):
        none, one, two = (list(kept.of(savings_cell(block, below, m)).values()) for m in SAVINGS_MULTIPLES)
        found = sum(max(savings_cell(block, below, 1).effects) in p.adopted for p in one)
        played = f"{min(map(len, (none, one, two)))}"
        rows.append([name, played, _mean_runs(none), _mean_runs(two), share(found, len(one))])
    return table(["what is saved by", "campaigns of each kind", "runs at 0x", "runs at 2x", "adopted at 1x, %"], rows)


def _mean_runs(played: list[Played]) -> str:
    return mean([float(p.runs) for p in played], 1)


def guards(kept: Kept) -> str:  # noqa: ARG001 - the shape of a table
    """The two ways to hold a gain against what may be lost at one point."""
    rows = []
    for sd in GUARD_SDS:
        for loss in GUARD_LOSSES:
            cells = []
            for rule in ("estimate", "interval"):
                ends, brackets = guard_shares(rule, math.log1p(-loss), sd, GUARD_ALLOWED, GUARD_CANDIDATES)
                rest = (
                    f"{100 * ends['worse'] / GUARD_CANDIDATES:.0f} / {100 * ends['undecided'] / GUARD_CANDIDATES:.0f}"
                )
                cells += [share(ends["adopted"], GUARD_CANDIDATES), rest, f"{brackets:.1f}"]
            rows.append([f"{100 * sd:g}%", f"{100 * loss:g}%", *cells])
    head = ["run noise", "true loss at the point"]
    for rule in ("estimate", "interval"):
        head += [f"{rule}: adopted, %", "worse / undecided, %", "brackets"]
    return table(head, rows)


def leaks(kept: Kept) -> str:  # noqa: ARG001 - the shape of a table
    """Servers that the test of a soak calls growing."""
    rows = [
        [name, *(share(alarms(law, count, LEAK_SERVERS), LEAK_SERVERS) for count in LEAK_LOOKS)]
        for name, law in LAWS.items()
    ]
    return table(["memory", *(f"of {count} samples, %" for count in LEAK_LOOKS)], rows)


def errors(kept: Kept) -> str:  # noqa: ARG001 - the shape of a table
    """Arms that are called unstable for requests that failed in their soaks."""
    rows = []
    for own, base in SHARES:
        found = ended(own, base, SOAKED_ARMS)
        shares = [f"{100 * own:g}%", f"{100 * base:g}%", share(found.blamed, SOAKED_ARMS)]
        rows.append([*shares, f"{found.soaks / SOAKED_ARMS:.1f}", share(found.at_once, SOAKED_ARMS)])
    head = ["the arm fails", "its reference", "called unstable, %", "soaks of the arm"]
    return table([*head, "by one failed request alone, %"], rows)


def falls(kept: Kept) -> str:  # noqa: ARG001 - the shape of a table
    """What becomes of candidates that fall in their soaks."""
    rows = []
    for own, base in FALLS:
        found = fallen(own, base, FALLEN_CAMPAIGNS)
        shares = [share(found.kinds[kind], FALLEN_CAMPAIGNS) for kind in ("unstable", "undecided", "adopted")]
        made = f"{found.soaks / FALLEN_CAMPAIGNS:.1f}"
        rows.append([f"{100 * own:g}%", f"{100 * base:g}%", *shares, made, f"{100 * own:g}"])
    head = ["the arm falls in", "its reference", "unstable, %", "undecided, %", "adopted, %", "soaks of both"]
    return table([*head, "unstable by one fall alone, %"], rows)


TABLES: dict[str, tuple[str, Callable[[Kept], str]]] = {
    "nulls": ("nulls", nulls),
    "power": ("power", power),
    "economy": ("power", economy),
    "coverage": ("mix", coverage),
    "headline": ("mix", headline),
    "savings": ("savings", savings),
    "guards": ("guards", guards),
    "leaks": ("leaks", leaks),
    "errors": ("errors", errors),
    "falls": ("falls", falls),
}
"""Name in the document: the study that it needs, and who writes it."""
