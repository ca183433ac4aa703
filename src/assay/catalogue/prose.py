r"""The prose of an improvement document: written from a hypothesis, read back section by section.

A section that belongs to the optimization (why, what, what can go wrong) begins with the text that is kept; what stands
below its marker `<!-- here -->` was written from numbers and from the front matter, and is not read back.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from assay.catalogue.about import About
from assay.catalogue.refutation import percent, refutation
from assay.records.hypothesis import Hypothesis, Optimization, Reported, Risk
from assay.records.reasoning import Condition, RangeBasis, Reasoning
from assay.records.spec import RANDOM_WEIGHTS

BEGIN, END = "<!-- assay:verdict -->", "<!-- /assay:verdict -->"
HERE = "<!-- here -->"
NUMERICS = {
    "exact": "The arithmetic stays the same: the answers must not differ more than the baseline's own do.",
    "reordered": "Sums are taken in another order: near-ties may flip, the declared share of tokens must stay.",
    "approximate": "Another computation: the declared share of next tokens must stay, however fast it is.",
}
READ_BACK = {
    "Why here": "rationale", "What it should do": "mechanism", "What can go wrong": "risk",
    "Rationale": "rationale", "Mechanism": "mechanism", "Risks": "risk",
}  # fmt: skip
"""Sections that belong to the optimization: what a person writes there is what Assay keeps. The last three are names
that they had before."""
STRUCTURE = re.compile(r"^(\\*)(?=#|<!--)", re.MULTILINE)
ESCAPED = re.compile(r"^(\\*)\\(?=#|<!--)", re.MULTILINE)
TIERS = {1: "a flag", 2: "configuration, layout or model artifact", 3: "code or kernels"}


def prose(hypothesis: Hypothesis, about: About | None = None) -> str:
    """All sections under the front matter."""
    optimization = hypothesis.optimization
    about = about or About()
    parts = [
        f"# {one_line(optimization.title)}",
        *(f"> {one_line(told)}" for told in _warnings(hypothesis, about)),
        _kept_section("Why here", optimization.rationale, list(_why_here(about))),
        _kept_section("What it should do", optimization.mechanism, list(_expected(hypothesis, about))),
        f"## How\n\n{_steps(hypothesis, about)}",
        _kept_section("What can go wrong", optimization.risk, list(_risks(optimization, about))),
        f"## How to undo it\n\n{_undo(hypothesis)}",
        f"## What would refute it\n\n{refutation(hypothesis, about)}",
        f"## What others report\n\n{_reported(optimization)}",
        "## Notes\n\n",
        f"## Verdict\n\n{BEGIN}\nnot tried yet\n{END}",
    ]
    return "\n\n".join(parts) + "\n"


def sections(body: str) -> dict[str, str]:
    """The fields of the optimization that are kept in prose, as a person left them."""
    found = re.split(r"^## (.*?)[ \t]*$", body.replace("\r\n", "\n"), flags=re.MULTILINE)
    named = dict(zip(found[1::2], found[2::2], strict=True))
    kept = {field: _above(named[name]) for name, field in reversed(READ_BACK.items()) if name in named}
    return {field: ESCAPED.sub(r"\1", text.strip()) for field, text in kept.items()}


def with_verdict(text: str, verdict: str) -> str:
    """The document with its verdict section replaced, or added; everything else as it was."""
    section = f"{BEGIN}\n{verdict.replace('<!--', '&lt;!--')}\n{END}"
    begin = text.rfind(BEGIN)
    end = text.find(END, begin) if begin >= 0 else -1
    if end < 0:  # a marker without its partner is a person's text by now: nothing after it may be lost
        return text.rstrip("\n") + f"\n\n## Verdict\n\n{section}\n"
    return text[:begin] + section + text[end + len(END) :]


def one_line(text: str) -> str:
    """A text that cannot end a line or open a comment."""
    return " ".join(text.split()).replace("<!--", "&lt;!--")


def _kept_section(name: str, text: str, generated: list[str]) -> str:
    """A text that is read back, and below the marker what is not."""
    below = [HERE, *(one for one in generated if one)] if any(generated) else []
    return "\n\n".join(filter(None, [f"## {name}", _kept(text), *below]))


def _above(text: str) -> str:
    found = re.search(rf"^{re.escape(HERE)}[ \t]*$", text, flags=re.MULTILINE)
    return text[: found.start()] if found else text


def _kept(text: str) -> str:
    r"""A text that is read back: its lines that look like structure of the document get a backslash (`\## so`)."""
    return STRUCTURE.sub(r"\1\\", text)


def _warnings(hypothesis: Hypothesis, about: About) -> Iterator[str]:
    optimization = hypothesis.optimization
    if about.elsewhere:
        yield about.elsewhere
    if optimization.expectation:
        yield optimization.expectation
    if hypothesis.blocked_reason:
        yield f"blocked: {hypothesis.blocked_reason}"
    if hypothesis.waits_for:
        yield f"waits until {' and '.join(hypothesis.waits_for)} is adopted: without that it does nothing here"


def _why_here(about: About) -> Iterator[str]:
    """This machine's and this model's numbers."""
    thought = about.reasoning
    yield "\n".join(f"- {one_line(sentence)}" for sentence in about.surroundings.sentences)
    if thought is None:
        return
    if thought.ceiling is not None:
        here = thought.ceiling
        touched = f"It touches {here.touched_share:.0%} of that step: " if here.applies else "By calculation: "
        yield f"{touched}{one_line(here.reason)}."
        if here.prompt_reason and here.prompt_share:
            yield f"In the prompts ({here.prompt_share:.0%} of the time): {one_line(here.prompt_reason)}."
    elif about.surroundings.sentences:
        yield f"There is no ceiling by calculation: {one_line(thought.no_ceiling)}."
    if thought.conditions:
        yield "It applies because " + "; ".join(map(_condition, thought.conditions)) + "."
    for finding in thought.findings:
        yield f"Known of these flags on this target: {one_line(finding)}."


def _condition(condition: Condition) -> str:
    values = ", ".join(f"{name} is {value}" for name, value in condition.values.items() if name != condition.text)
    return f"`{one_line(condition.text)}`" + (f" ({one_line(values)})" if values else "")


def _expected(hypothesis: Hypothesis, about: About) -> Iterator[str]:
    low, high = (percent(bound) for bound in hypothesis.predicted)
    yield f"**Predicted: {low} to {high} on {about.objective}**, scored after the verdict.{_bounds(about.reasoning)}"
    if (known := about.corrected) is not None:
        effects = "one effect" if known.num_scores == 1 else f"{known.num_scores} effects"
        yield (
            f"Corrected by {effects} measured on {one_line(known.machine_class)}: {percent(round(known.low, 3))} to "
            f"{percent(round(known.high, 3))}. That orders the work; what is scored is the range above."
        )
    optimization = hypothesis.optimization
    if optimization.regime:
        inside = about.reasoning.in_regime if about.reasoning else None
        told = {True: " This workload lies there.", False: " This workload lies outside of that.", None: ""}[inside]
        yield f"Where it pays: {one_line(optimization.regime)}{told}"
    if about.cost:
        yield about.cost


def _bounds(thought: Reasoning | None) -> str:
    if thought is None or thought.range is None:
        return " It rests on a prior: nobody measured it on this target."
    told: RangeBasis = thought.range
    if told.low_from == told.high_from:
        first = f" Both ends are {told.low_from}."
    else:
        first = f" The lower end is {told.low_from}; the upper end is {told.high_from}."
    prior = tuple(percent(bound) for bound in thought.prior)
    cut = f" The prior alone said {prior[0]} to {prior[1]}." if told.high_from != told.low_from else ""
    ceiling = thought.ceiling
    room = thought.no_ceiling and ceiling is not None and ceiling.applies
    loose = (
        f" The ceiling of {percent(ceiling.gain.high)} is not applied: {thought.no_ceiling}."
        if room and ceiling
        else ""
    )
    return f"{first}{cut}{loose}"


def _steps(hypothesis: Hypothesis, about: About) -> str:
    optimization = hypothesis.optimization
    if optimization.needs_work:
        return f"It cannot be launched yet. What has to be made first: {one_line(optimization.needs_work)}"
    steps = [
        f"Make the model again with every matrix in {optimization.artifact.type}, and serve it in place of the other."
        if optimization.artifact
        else "",
        f"Adopt {' and '.join(hypothesis.waits_for)} first." if hypothesis.waits_for else "",
        _change(optimization),
        f"Read the configuration back; in force when `{one_line(optimization.verify)}`."
        if optimization.verify
        else 'Read the configuration back, and look for lines in the log that contradict it ("falling back", '
        '"disabled because").',
        f"Compare the answers. {NUMERICS[optimization.numerics]}"
        + (f" Here {RANDOM_WEIGHTS}." if about.random_weights else ""),
        "Measure it between runs of the baseline until the interval decides. `assay run` does all of this.",
    ]
    numbered = "\n".join(f"{number}. {step}" for number, step in enumerate(filter(None, steps), start=1))
    whole = f"\n\nThe whole command:\n\n```sh\n{about.command}\n```" if about.command else ""
    return numbered + whole


def _change(optimization: Optimization) -> str:
    added = shlex.join(
        word for name, value in optimization.flags.items() for word in _words(name, value) if value is not False
    )
    off = [name for name, value in optimization.flags.items() if value is False]
    env = " ".join(f"{name}={shlex.quote(value)}" for name, value in optimization.env.items())
    told = [
        f"add `{one_line(added)}`" if added else "",
        f"switch off {', '.join(f'`{name}`' for name in off)}" if off else "",
        f"leave out {', '.join(f'`{name}`' for name in optimization.remove_flags)}"
        if optimization.remove_flags
        else "",
        f"set `{one_line(env)}` in the server's environment" if env else "",
    ]
    said = "; ".join(filter(None, told))
    return f"Launch the baseline with one change: {said}." if said else "Launch with the baseline's other flags."


def _words(name: str, value: object) -> list[str]:
    return [name] if value is True else [name, str(value)]


def _risks(optimization: Optimization, about: About) -> Iterator[str]:
    yield "\n".join(f"- {_risk(risk)}" for risk in optimization.risks)
    rivals = [name for name in optimization.excludes if about.known is None or name in about.known]
    if rivals:
        others = ", ".join(f"`{name}`" for name in rivals)
        yield f"It cannot be in the stack together with {others}: at most one of them is kept."


def _risk(risk: Risk) -> str:
    return f"{one_line(risk.what)} ({one_line(risk.source)})" if risk.source else one_line(risk.what)


def _undo(hypothesis: Hypothesis) -> str:
    optimization = hypothesis.optimization
    if optimization.needs_work:
        return "Nothing was changed yet."
    told = ["Launch the baseline's command again"]
    if optimization.env:
        told.append(f"without {', '.join(f'`{name}`' for name in optimization.env)} in the environment")
    if optimization.artifact:
        told.append("with the model's own file; the converted one can be deleted")
    return ", ".join(told) + ". Nothing else is changed on the machine, and no state is carried over a restart."


def _reported(optimization: Optimization) -> str:
    claims = [f"- {one_line(_claim(one))}" for one in optimization.reported]
    return "\n".join(claims) or "Nothing that could be cited."


def _claim(one: Reported) -> str:
    return f"{one.gain}; {one.where} ({one.source})" if one.where else f"{one.gain} ({one.source})"
