"""The prose of an improvement document: written from a hypothesis, read back section by section."""

from __future__ import annotations

import re

from assay.records.hypothesis import Hypothesis

BEGIN, END = "<!-- assay:verdict -->", "<!-- /assay:verdict -->"
NUMERICS = {
    "exact": "The arithmetic stays the same: the answers must not differ more than the baseline's own do.",
    "reordered": "Sums are taken in another order: near-ties may flip, the declared share of tokens must stay.",
    "approximate": "Another computation: the declared share of next tokens must stay, however fast it is.",
}
READ_BACK = {"Rationale": "rationale", "Mechanism": "mechanism", "Risks": "risk"}
"""Sections that belong to the optimization: what a person writes there is what Assay keeps."""
STRUCTURE = re.compile(r"^(\\*)(?=#|<!--)", re.MULTILINE)
ESCAPED = re.compile(r"^(\\*)\\(?=#|<!--)", re.MULTILINE)


def prose(hypothesis: Hypothesis) -> str:
    """All sections under the front matter."""
    optimization = hypothesis.optimization
    low, high = (f"{100 * bound:+.4g}%" for bound in hypothesis.predicted)
    claims = [f"- {claim.gain}; {claim.where} ({claim.source})" for claim in optimization.reported]
    rests_on = "the claims under References" if claims else "a prior: nobody measured it on this target"
    parts = [
        f"# {_one_line(optimization.title)}",
        *([f"> {_one_line(optimization.expectation)}"] if optimization.expectation else []),
        *([f"> blocked: {_one_line(hypothesis.blocked_reason)}"] if hypothesis.blocked_reason else []),
        f"## Rationale\n\n{_kept(optimization.rationale)}",
        f"## Mechanism\n\n{_kept(optimization.mechanism)}",
        f"## Prediction\n\n{low} to {high} on the objective. It rests on {rests_on}; it is scored after the verdict.",
        f"## Conditions\n\nApplies when `{_one_line(optimization.applies_when)}`.{_family(hypothesis)}",
        f"## Steps\n\n{_steps(hypothesis)}",
        f"## Risks\n\n{_kept(optimization.risk)}",
        "## Rollback\n\nLeave the flags out; nothing else is changed on the machine.",
        "## References\n\n" + ("\n".join(_one_line(claim) for claim in claims) or "None."),
        "## Notes\n\n",
        f"## Verdict\n\n{BEGIN}\nnot tried yet\n{END}",
    ]
    return "\n\n".join(parts) + "\n"


def sections(body: str) -> dict[str, str]:
    """The fields of the optimization that are kept in prose, as a person left them."""
    found = re.split(r"^## (.*?)[ \t]*$", body.replace("\r\n", "\n"), flags=re.MULTILINE)
    named = dict(zip(found[1::2], found[2::2], strict=True))
    return {field: ESCAPED.sub(r"\1", named[name].strip()) for name, field in READ_BACK.items() if name in named}


def with_verdict(text: str, verdict: str) -> str:
    """The document with its verdict section replaced, or added; everything else as it was."""
    section = f"{BEGIN}\n{verdict.replace('<!--', '&lt;!--')}\n{END}"
    begin = text.rfind(BEGIN)
    end = text.find(END, begin) if begin >= 0 else -1
    if end < 0:  # a marker without its partner is a person's text by now: nothing after it may be lost
        return text.rstrip("\n") + f"\n\n## Verdict\n\n{section}\n"
    return text[:begin] + section + text[end + len(END) :]


def _kept(text: str) -> str:
    r"""A text that is read back: its lines that look like structure of the document get a backslash (`\## so`)."""
    return STRUCTURE.sub(r"\1\\", text)


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("<!--", "&lt;!--")


def _family(hypothesis: Hypothesis) -> str:
    others = ", ".join(f"`{name}`" for name in hypothesis.optimization.excludes)
    return f" Not in the stack together with {others}." if others else ""


def _steps(hypothesis: Hypothesis) -> str:
    optimization = hypothesis.optimization
    added = " ".join(name if value is True else f"{name} {value}" for name, value in optimization.flags.items())
    steps = [
        f"Make the model again with every matrix in {optimization.artifact.type}, and serve it in place of the other."
        if optimization.artifact
        else "",
        f"Leave out {', '.join(f'`{name}`' for name in optimization.remove_flags)}."
        if optimization.remove_flags
        else "",
        f"Launch the baseline with `{_one_line(added)}`." if added else "Launch with the baseline's other flags.",
        f"Read the configuration back; in force when `{_one_line(optimization.verify)}`."
        if optimization.verify
        else "Read the configuration back, and look for lines in the log that contradict it.",
        f"Compare the answers. {NUMERICS[optimization.numerics]}",
        "Measure it between runs of the baseline until the interval decides.",
    ]
    return "\n".join(f"{number}. {step}" for number, step in enumerate(filter(None, steps), start=1))
