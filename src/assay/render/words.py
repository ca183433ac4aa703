"""Numbers and small phrases, as people read them; used by every output."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import get_args

from assay.plan.answers_told import untold_answers
from assay.plan.verdicts import AT_PLAN_TIME, DEPENDENCY, IMPLIED, effect_text
from assay.records.base import FlagValue
from assay.records.machine import GpuIdentity
from assay.records.spec import RANDOM_WEIGHTS, LatencyName, MetricName
from assay.records.state import CampaignState
from assay.records.verdict import Calibration, Effect, Verdict, VerdictKind
from assay.records.views import Corrected
from assay.render.soak_facts import stability_note

UNITS: dict[str, tuple[str, float]] = {
    "output_tokens_per_s": ("output tokens/s", 1.0),
    "requests_per_s": ("requests/s", 1.0),
    **{name: (f"ms {name.split('_')[0].upper()} {name.split('_')[1]}", 1000.0) for name in get_args(LatencyName)},
}
COUNTED = re.compile(r"(\d+) bracket\(s\)")
NOTHING = "\N{EM DASH}"
"""Shown where nothing was measured."""
SIMULATED = "SIMULATED"
"""Shown wherever a number comes from a simulation."""
WITH_CAUSE = frozenset({VerdictKind.BLOCKED, VerdictKind.UNSTABLE})
UNTRIED = {AT_PLAN_TIME: "at plan time", IMPLIED: "by another's failure", DEPENDENCY: "what it needs"}
"""Causes of a verdict without a run."""


def is_simulated(state: CampaignState) -> bool:
    """Whether the campaign's numbers come from a simulation."""
    return state.is_simulated


def effect_words(effect: Effect | None) -> str:
    """For example "+12.3% [+4.1, +21.2]"."""
    return NOTHING if effect is None else effect_text(effect)


def short_range_words(predicted: tuple[float, float]) -> str:
    """For example "+10..+80%": where room is scarce."""
    return f"{100 * predicted[0]:+.0f}..{100 * predicted[1]:+.0f}%"


def corrected_by(known: Corrected) -> str:
    """What a corrected range rests on: "7 effects measured on AMD EPYC, llamacpp, dense models"."""
    effects = "one effect" if known.num_scores == 1 else f"{known.num_scores} effects"
    return f"{effects} measured on {known.machine_class}"


def range_words(predicted: tuple[float, float]) -> str:
    """For example "+10% to +80%"."""
    return f"{100 * predicted[0]:+.0f}% to {100 * predicted[1]:+.0f}%"


def verdict_words(verdict: Verdict | None) -> str:
    """The kind, with its cause where it has one."""
    if verdict is None:
        return "not tried"
    cause = verdict.cause if verdict.kind in WITH_CAUSE else None
    cause = UNTRIED.get(cause or "", cause)
    return f"{verdict.kind}: {cause}" if cause else str(verdict.kind)


def headline_words(state: CampaignState) -> str:
    """The headline with its metric as people read it, and what its record did not say yet; empty without one."""
    if state.headline is None:
        return ""
    metric = state.spec.objective.metric
    said = state.headline.sentence.replace(metric, UNITS[metric][0].removeprefix("ms "))
    note = stability_note(state.headline)
    return f"{said.removesuffix('.')}{note}." if note else said


def _counted(text: str) -> str:
    """Reasons of an earlier Assay count "1 bracket(s)"."""
    return COUNTED.sub(lambda found: f"{found[1]} bracket" + ("" if found[1] == "1" else "s"), text)


def reason_words(verdict: Verdict | None) -> str:
    """The verdict's reason, without the effect and the cause that are shown beside it."""
    if verdict is None:
        return ""
    return beside_cause(verdict).removeprefix(f"{effect_words(verdict.effect)}: ")


def beside_cause(verdict: Verdict) -> str:
    """The verdict's reason, without the cause that `verdict_words` says."""
    said = verdict.reason.removeprefix(f"{verdict.cause} ") if verdict.kind in WITH_CAUSE else verdict.reason
    return _counted(said)


def beside_line(verdict: Verdict) -> str:
    """The reason without the engine's line, where that stands below it."""
    reason = reason_words(verdict)
    return reason.replace(f": {verdict.line}", "") if verdict.line else reason


def sentence_words(text: str) -> str:
    """The text, closed with a full stop."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


def opened_words(text: str) -> str:
    """The text, begun with a capital."""
    return text[:1].upper() + text[1:]


def held_words(held: bool | None) -> str:
    """Whether a predicted range met what was measured."""
    return NOTHING if held is None else "held" if held else "missed"


def gpu_words(gpus: Sequence[GpuIdentity]) -> str:
    """For example "2 x NVIDIA H200"; empty where there are none."""
    counted = Counter(gpu.name for gpu in gpus)
    return ", ".join(name if number == 1 else f"{number} x {name}" for name, number in counted.items())


def duration_words(seconds: float) -> str:
    """For example "45 s", "3 min 20 s", "2 h 05 min"."""
    whole = round(seconds)
    if whole < 60:  # noqa: PLR2004 - seconds in a minute
        return f"{whole} s"
    if whole < 3600:  # noqa: PLR2004 - seconds in an hour
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def answers_words(state: CampaignState) -> list[str]:
    """What has to be known of the comparisons of answers before they are read; empty where they say what they show."""
    return [RANDOM_WEIGHTS] * state.spec.target.has_random_weights + untold_answers(state)


def measuring_words(state: CampaignState) -> str:
    """Measuring time, by what is charged to the budget: "3 min 20 s of measuring"; `uncharged_words` is the rest."""
    return f"{duration_words(state.charged_s)} of measuring"


def uncharged_words(state: CampaignState) -> str:
    """What goes behind the measuring time: that of runs whose gates failed; empty where none did."""
    lost_s = state.invalid_s
    return f"; {duration_words(lost_s)} more of runs that do not count, not charged" if lost_s else ""


def waited_words(state: CampaignState) -> str:
    """What goes behind the measuring time: ", and 3 min 20 s waited for a quiet machine"; empty where none was."""
    waited_s = state.waited_s
    return f", and {duration_words(waited_s)} waited for a quiet machine" if waited_s else ""


def span_words(bounds: tuple[int, int]) -> str:
    """For example "160 to 288"; "256" where both bounds are that."""
    return str(bounds[0]) if bounds[0] == bounds[1] else f"{bounds[0]} to {bounds[1]}"


def number_words(value: float | None) -> str:
    """Three significant digits, more before the decimal point: "0.0912", "9.12", "91.2", "91,234"."""
    if value is None:
        return NOTHING
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}"


def metric_number(value: float | None, metric: MetricName) -> str:
    """A value of the objective, without its unit."""
    return NOTHING if value is None else number_words(value * UNITS[metric][1])


def metric_words(value: float | None, metric: MetricName) -> str:
    """A value of the objective, with its unit."""
    return NOTHING if value is None else f"{metric_number(value, metric)} {UNITS[metric][0]}"


def milliseconds_words(seconds: float | None) -> str:
    """Seconds as milliseconds, without the unit."""
    return NOTHING if seconds is None else number_words(1000 * seconds)


def share_words(share: float | None) -> str:
    """For example "2.9%"."""
    return NOTHING if share is None else f"{100 * share:.1f}%"


def noise_words(calibration: Calibration) -> str:
    """The box's noise and what it allows to be found."""
    found = f"{100 * calibration.min_detectable_effect:.0f}%"
    return f"one A/A bracket scatters by ±{100 * calibration.bracket_sd:.1f}%; the screen finds {found} and above"


def drift_words(log_per_hour: float | None) -> str:
    """The baseline's trend."""
    if log_per_hour is None:
        return "too few runs to tell"
    return f"{100 * math.expm1(log_per_hour / 60):+.1f}% a minute"


def flag_words(flags: dict[str, FlagValue]) -> str:
    """Flags as one would type them."""
    given = {name: value for name, value in flags.items() if value is not False}
    return " ".join(name if value is True else f"{name} {value}" for name, value in given.items())
