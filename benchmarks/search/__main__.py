"""Launches and hours until the best setting is found, ours against other ways to search, on known landscapes.

    python -m benchmarks.search [--seeds 50] [--launches 60] [--landscape WORDS] [--method WORDS] [--without WAY ...]
        [--json FILE]

A way of searching has found it from the launch on after which what it would recommend is within 2% of the true best
value, and stays so for the rest of its launches; "first" counts the first time. Every launch counts: the failed ones,
and for Assay those of the baseline, which the others do not make. Searches that end by themselves are held to their
last word. What was not found within the launches is counted as all of them.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean as mean
from statistics import median

from benchmarks.search.landscapes import Landscape, landscapes
from benchmarks.search.methods import METHODS, MIN_EFFECT
from benchmarks.search.world import World, start

from assay.plan.dials import Ground, ground_of

WITHIN = 0.02


@dataclass(frozen=True)
class Search:
    """One search with one seed."""

    landscape: str
    method: str
    seed: int
    first: int | None
    held: int | None
    """Launches; None: not found."""
    held_s: float
    launches: int
    """Made in all; fewer than allowed where it ended by itself."""
    failed: int
    regret: float
    """Of its last word: 0.01 is 1% below the best."""
    settings: int
    near: int
    impossible: int
    to_gain: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--launches", type=int, default=60)
    parser.add_argument("--drift", type=float, default=0.0, help="of the log value, per launch")
    parser.add_argument("--landscape", default="")
    parser.add_argument("--method", default="")
    left_out = "ways to leave out, by their whole names"
    parser.add_argument("--without", nargs="*", default=[], choices=list(METHODS), metavar="WAY", help=left_out)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    found: list[Search] = []
    every = landscapes(given.first_seed)
    for number, one in enumerate(every):
        ways = [way for way in ways_of(one) if given.method in way and way not in given.without]
        if given.landscape not in one.name or not ways:
            continue
        rows = []
        for seed in seeds:
            landscape = landscapes(seed)[number]
            ground = ground_of(start(landscape, seed, MIN_EFFECT), landscape.dial)
            rows += [search(landscape, ground, way, seed, given.launches, given.drift) for way in ways]
            print(f"{one.name}: seed {seed}", file=sys.stderr)
        tell(one, rows, given.launches)
        found += rows
        if given.json:
            given.json.write_text(json.dumps([asdict(row) for row in found], indent=1))
    if not found:
        names, known = (" | ".join(words) for words in ([one.name for one in every], METHODS))
        parser.error(f"nothing was searched; landscapes: {names}; ways: {known}")


def ways_of(landscape: Landscape) -> list[str]:
    """Every way; where nothing is estimated ours without estimates would be itself once more."""
    is_guided = landscape.dial.estimate is not None
    return [way for way in METHODS if is_guided or way != "Assay without estimates"]


def search(landscape: Landscape, ground: Ground, method: str, seed: int, launches: int, drift: float) -> Search:
    world = World(landscape, seed, drift)
    every = [landscape.truth(ground.space.settings(point)) or 0.0 for point in ground.space.points]
    best, stands = max(every), landscape.truth({k.name: landscape.baseline[k.flag] for k in landscape.dial.knobs})
    assert stands is not None
    steps = METHODS[method](landscape, ground, seed)
    said, spent_s, failed = [], [], 0
    try:
        settings, _ = next(steps)
        while True:
            value = world.launch(settings)
            failed += value is None
            spent_s.append(world.spent_s)
            settings, recommended = steps.send(value)
            said.append(recommended)
            if world.launches == launches:
                break
    except StopIteration as end:
        said.append(end.value)
    values = [landscape.truth(one) or 0.0 if one is not None else 0.0 for one in said]
    good = [value >= (1 - WITHIN) * best for value in values]
    lasting = next((n for n in range(len(good)) if all(good[n:])), None)
    return Search(
        landscape=landscape.name, method=method, seed=seed,
        first=good.index(True) + 1 if any(good) else None,
        held=None if lasting is None else lasting + 1,
        held_s=launches * landscape.run_s if lasting is None else spent_s[lasting],
        launches=world.launches, failed=failed, regret=1 - values[-1] / best, settings=len(every),
        near=sum(value >= (1 - WITHIN) * best for value in every), impossible=sum(not value for value in every),
        to_gain=best / stands - 1,
    )  # fmt: skip


def tell(landscape: Landscape, rows: list[Search], launches: int) -> None:
    once = {row.seed: row for row in rows}.values()
    print(
        f"\n**{landscape.name}** ({landscape.origin}): {rows[0].settings} settings, {mean(r.near for r in once):.0f} "
        f"of them within {WITHIN:.0%} of the best, {mean(r.impossible for r in once):.0f} fail; the best is "
        f"{mean(r.to_gain for r in once):+.0%} over the baseline; noise {landscape.noise:.1%}; {len(once)} seeds\n"
    )
    print("| way | found | launches, mean | median | first time, mean | hours, mean | all launches | failed | regret |")
    print("|---|---|---|---|---|---|---|---|---|")
    for method in dict.fromkeys(row.method for row in rows):
        mine = [row for row in rows if row.method == method]
        held = [launches if row.held is None else row.held for row in mine]
        first = [launches if row.first is None else row.first for row in mine]
        print(
            f"| {method} | {sum(row.held is not None for row in mine) / len(mine):.0%} "
            f"| {mean(held):.1f} | {median(held):g} | {mean(first):.1f} "
            f"| {mean(row.held_s for row in mine) / 3600:.2f} "
            f"| {mean(row.launches for row in mine):.1f} "
            f"| {mean(row.failed for row in mine):.1f} "
            f"| {mean(row.regret for row in mine):.1%} |"
        )


if __name__ == "__main__":
    main()
