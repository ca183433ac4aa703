"""What the server's own counters say of its prefix cache, held against what the workload declares to be shared."""

from __future__ import annotations

from assay.load.columns import Columns
from assay.load.server import Counters
from assay.load.spool import MAX_SHARED
from assay.records.run import Gate

MAX_CACHED_SHARE = 0.01
LOW_SHARE = 0.5
"""Of what is declared: fewer hits than that are worth a word."""


def hits_gate(requests: Columns, first: Counters, last: Counters) -> Gate | None:
    """Hits between two readings over tokens looked up; None where the server does not count them.

    Too many are contamination: somebody's, or an earlier run's. Too few are none: whether the cache is on, and large
    enough, is the server's affair, and a candidate may change it. A cache that keeps single tokens finds the few with
    which prompts begin alike by chance: `MAX_SHARED` of each are allowed.
    """
    hits = _rise(first.prefix_hits, last.prefix_hits)
    looked_up = _rise(first.prefix_queries, last.prefix_queries)
    if hits is None or looked_up is None:
        return None
    share = declared_share(requests)
    chance = min(MAX_SHARED * len(requests), looked_up)
    passed = hits <= (share + MAX_CACHED_SHARE) * looked_up + chance
    return Gate(
        name="prefix-hits-as-declared",
        passed=passed,
        evidence=f"the server's counters: {_told(hits, looked_up)}; {100 * share:.0f}% are declared to be shared"
        + (": its cache is off, or does not hold them" if share and hits < LOW_SHARE * share * looked_up else ""),
        remedy="" if passed else "reset the prefix cache or restart the server, and use another seed",
    )


def declared_share(requests: Columns) -> float:
    """Of the prompt tokens that were asked for: `sum(shared) / sum(asked)`; 0 where their number is unknown."""
    asked = int(requests.wanted_input_tokens[requests.wanted_input_tokens > 0].sum())
    return float(requests.shared_tokens.sum()) / asked if asked else 0.0


def _rise(first: float | None, last: float | None) -> float | None:
    return None if first is None or last is None else last - first


def _told(hits: float, looked_up: float) -> str:
    share = f" ({100 * hits / looked_up:.0f}%)" if looked_up > 0 else ""
    return f"{hits:,.0f} of {looked_up:,.0f} prompt tokens{share} from its prefix cache"
