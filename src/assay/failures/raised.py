"""How a line tells of an exception: as Python prints it, as another process relays it, or as what carries it does."""

from __future__ import annotations

import re

RAISED = re.compile(
    r"^(?:\w{1,60}\.){0,8}(?P<kind>gaierror|[A-Z]\w{0,60}(?:Error|Exception|Unsupported|Mismatch|Expired|Timeout"
    r"|Unavailable|Refused|Failure)|Exception)"
    r"(?:: (?P<why>.{0,400})|:?\s*$|\((?P<quote>['\"])(?P<words>.{1,400})(?P=quote),?\)$)"
    r"|^\s*(?P<value>Value error|Assertion failed), (?P<what>.{1,400}?)(?: \[type=|$)"
)
"""An exception as Python prints it, or as pydantic tells of one that a check of the configuration raised."""
RELAYED = re.compile(
    r"^(?:\w{1,60}\.){0,8}\w{1,60}Error: Worker failed with error '(?P<said>.{4,400}?)'(?:, please\b|$)"
)
"""vLLM's front end tells the words of a worker's exception, with its class or without."""
CARRIED = re.compile(
    r"""^(?:["'](?:\[[\w ]{1,20}\] )?(?:[Ff]ailed to [^\n]{1,120}?: )?"""
    r"""|(?:[Ff]atal error|[Uu]n(?:handled|caught) exception)\b[^\n]{0,40}?: """
    r"""|[Ff]ailed to (?:start|initiali[sz]e|load|launch|create) (?:\w{1,20} ){0,3}"""
    r"""(?:engine|model|server|worker|executor)\b[^\n]{0,120}?: )"""
    r"""(?P<said>(?:\w{1,60}\.){0,8}[A-Z]\w{1,60}(?:Error|Exception): [^\n]{4,400})"""
)
"""What carries an engine (Triton's stub) tells of an exception in a line of its own."""
ANSWERED = re.compile(
    r"""^(?:\w{1,60}\.){0,8}(?:InternalServer|APIStatus|API)Error: Error code: 5\d\d - \{[^\n]{0,300}?"""
    r"""["']message["']: (?P<quote>["'])(?P<said>[^\n]{4,400}?)(?:(?<!\\)(?P=quote)(?=[,}])|$)"""
)
"""A client tells what the server that failed answered: the words of an exception there."""
RAISING = re.compile(r"""^\s+raise (?P<kind>[A-Z]\w{2,60})\(f?["'](?P<why>.{4,400})""")
"""The source line of a traceback that was cut before its exception."""


def first_hand(body: str) -> str:
    """What was raised, of a line in which another process tells it."""
    for told in (CARRIED, ANSWERED, RELAYED):
        if found := told.match(body):
            return found["said"] if RAISED.match(found["said"]) else f"RuntimeError: {found['said']}"
    return body
