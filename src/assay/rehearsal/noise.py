"""How the simulated machine differs from itself: between launches, within one, over the hours, and when it is hot.

Speed = exp(run + within + drift) * (1 - throttle * heat):

- run ~ N(0, run_sd), drawn once a launch;
- within: stationary AR(1) in continuous time (Ornstein-Uhlenbeck), exp(-dt / correlation_s) over a step of length dt;
- drift: linear since the epoch, turned around at the limit (a triangle wave), so that it never runs away;
- heat: first-order towards 1 under load and towards 0 when idle.
"""

from __future__ import annotations

import math
from random import Random

from assay.rehearsal.world_file import NoiseSpec


class Noise:
    """The noise of one launch; the same seed gives the same noise."""

    def __init__(self, spec: NoiseSpec, seed: str, *, hours_since_epoch: float = 0.0) -> None:
        self._spec = spec
        self._rng = Random(seed)
        self._run = self._rng.gauss(0.0, spec.run_sd)
        self._within = self._rng.gauss(0.0, spec.step_sd)
        self._hours = hours_since_epoch
        self.heat = 0.0

    def slowdown(self, step_s: float, now_s: float) -> float:
        """Factor on the time of a step of about `step_s` that begins at `now_s` after the launch."""
        spec = self._spec
        kept = math.exp(-step_s / spec.correlation_s)
        self._within = kept * self._within + math.sqrt(1 - kept * kept) * self._rng.gauss(0.0, spec.step_sd)
        self.heat += (1 - self.heat) * (1 - math.exp(-step_s / spec.heating_s))
        log_speed = self._run + self._within + self.drift(now_s)
        return math.exp(-log_speed) / (1 - spec.throttle * self.heat)

    def rest(self, idle_s: float) -> None:
        """Nothing was computed for so long."""
        self.heat *= math.exp(-max(idle_s, 0.0) / self._spec.heating_s)

    def drift(self, now_s: float) -> float:
        """Log of the speed by the time since the epoch."""
        spec = self._spec
        raw = spec.drift_per_hour * (self._hours + now_s / 3600)
        if raw == 0 or spec.drift_limit == 0:
            return 0.0
        period = 4 * spec.drift_limit
        place = (raw + spec.drift_limit) % period
        return (place if place <= period / 2 else period - place) - spec.drift_limit

    def chance(self, share: float) -> bool:
        """True for a share of the times it is asked."""
        return share > 0 and self._rng.random() < share
