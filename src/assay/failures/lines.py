"""One line of a log without its decoration: who wrote it, at which level, and what it says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from assay.failures.dumps import without_arguments

Level = Literal["debug", "info", "warning", "error", "none"]
LEVELS: dict[str, Level] = {"d": "debug", "v": "debug", "i": "info", "w": "warning", "e": "error", "f": "error"}
"""By first letter; CRITICAL (c) is in no engine's one-letter levels and is mapped below."""
LONGEST = 4096
"""Characters of a line that rules look at; of a longer one the first and the last part."""
TAIL = 1024
MOST_PREFIXES = 10
BORDERED = " │┃"
"""What stands between a message and the edge of the terminal it was copied from."""
LEVEL_GROUPS = ("word", "trt", "llama", "glog", "bare", "letter", "slog")
ANSI = re.compile(r"(?:\x1b|#033|\\x1b|\\u001b|\^\[)\[[0-9;?]{0,40}[A-Za-z]|#015$")
"""A colour: as it is, and as syslog, JSON and `cat -v` write it."""
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
"""And halves of characters, which no file can hold."""

PREFIX = re.compile(
    r"""\s*(?:
      \((?P<who>[A-Za-z][^\n]{0,80}?pid=\d+[^)]{0,60})\)\s?           # vLLM, Ray: (EngineCore_DP0 pid=1)
    | \[(?P<rank>rank\d+)\]:\s?                                       # torchrun
    | \[\d{4}-\d\d-\d\d[ T|](?P<tag>[^\]]{0,60})\]\s?                 # SGLang: [2026-01-01 10:00:00 TP0]
    | \[\d\d[-/]\d\d[-/ ][^\]]{1,30}\]\s?                             # [01-01 10:00:00], [01/01/2026-10:00:00]
    | \[\s*\d+\.\d+\]\s?                                              # the kernel's
    | \d{4}-\d\d-\d\d[T ][\d:.,]{5,20}(?:Z|[+-]\d\d:?\d\d)?[ |-]{0,4} # 2026-01-01T10:00:00.000Z
    | \d+\.\d\d\.\d{3}\.\d{3}\ (?P<llama>[IWEDC])\                    # llama.cpp: 0.01.234.567 E
    | \[(?P<glog>[EWIF])(?:\d{3,4})?\ [^\]]{0,80}\]\s?                # [E1001 16:06:04 File.cpp:607]
    | (?P<bare>[EWIF])\d{4}\ [\d:.]{8,15}\ +\d+\ (?=[\w./-]{2,80}:\d+\])       # E1001 16:06:04.123456 1 file.cc:607] "
    | [\w./-]{2,80}\.(?:cc|cpp|cu|h|py|rs):\d{1,5}\]\ (?=")                  # what it quotes is another's
    | \[TensorRT-LLM\]\[(?P<trt>[A-Z]{4,8})\]\s?
    | \[(?:executor|_torch|serve|llmapi|runtime)\](?=\[RANK\ )         # TensorRT-LLM's parts, before the rank
    | std(?:out|err)\ [FP]\ \s{0,1}                                 # containerd: 2026-01-01T10:00:00+01:00 stderr F
    | time=\S{1,40}\ level=(?P<slog>[A-Z]{4,5})\ (?:source=\S{1,60}\ )?   # Go: ollama
    | (?P<relay>[\w.]{2,60}(?:\ -|:)\ )                              # a logger, or a program that relays lines
      (?=(?:INFO|WARNING|WARN|ERROR|DEBUG|CRITICAL|FATAL)\b)
    | \[TRT(?:-LLM)?\]\s? | \[RANK\ \d+\]\s?
    | \[(?P<letter>[EWIVDF])\]\s?
    | -?\s?(?P<word>INFO|WARNING|WARN|ERROR|DEBUG|CRITICAL|FATAL)\b(?::|\ -)?\s?
      (?:\d\d-\d\d\ \d\d:\d\d:\d\d\s?)?(?:\[?[\w./-]{1,80}\.(?:py|cpp|cu|cc):\d+\](?:\s(?=\S|\s))?)?
    | [A-Z][a-z]{2}\ +\d+\ [\d:]{8}\ (?:[^:\s]{1,60}\ )?[^:\s]{1,60}:\s # journal, with or without the host
    | [│┃|]\ ?                                          # the border of a terminal's pane, or of a group of exceptions
    | [\w.-]{1,40}\s{1,20}\|\                                         # docker compose
    )""",
    re.VERBOSE,
)
WARNING_CLASS = re.compile(r"\b\w{0,30}Warning: |^\s*warnings\.warn\(")
NCCL_INFO = re.compile(r"\bNCCL (?:INFO|TRACE)\b|\bUCX\s{1,3}(?:WARN|DIAG|INFO|DEBUG|TRACE)\b")
ADVICE = re.compile(
    r"\b(?:If exit code is|"
    r"(?:Some |A |most )?(?:common|potential|possible|likely) (?:root )?(?:causes?|reasons?|solutions?))\b",
    re.IGNORECASE,
)
"""What an engine guesses about itself: from here on a line states nothing."""
GOES_ON = re.compile(
    r"\b(?:fall(?:s|ing)? ?back|ignor(?:e|es|ed|ing)\b|disabl(?:e|es|ed|ing)\b|switch(?:ing|ed) to"
    r"|chang(?:ed|ing) .{1,60} to|change \w{1,40} to|default(?:s|ing)? to|instead\b|by default"
    r"|will (?:not )?be (?:skipped|applied|supported)|truncating|unavailable|not available|keeping|forcing|is unused"
    r"|to silence this|yield errors|\bskipping\b)",
    re.IGNORECASE,
)
"""What is said of something that was given up while the server went on."""
FUNCTION_GOES_ON = re.compile(
    r"^(?:Skipp|Ignor|Disabl|Fall)(?:ing|ed)\b"
    r"|^(?:\w{2,5} {1,10})?\w[\w:~]{2,60}: .{0,300}\b(?:disabling|will be disabled|falling back|forcing off"
    r"|rounding down|retrying|reserving|skipping|pinned memory)\b"
)
"""The same at the head of a line, or by llama.cpp, which names the function and, in older builds, no level."""
GAVE_UP_ON = re.compile(r"^(?:Failed to|\w[\w ]{1,40} check failed)\b(?!.{0,300}\b\w{2,60}(?:Error|Exception)\b)")
"""Said by code that caught an exception and went on; one that ends the server comes with its traceback."""
SOUNDS_WRONG = re.compile(
    r"error|exception|fail|fatal|time(?:d )?out|out of memory|oom\b|dead|died|kill|abort|exit code|sigquit|unbalanced"
    r"|not enough|in use|watchdog|hang|hung|leak|illegal|corrupt|cannot|can't|couldn't|unable|refused|lost|closed"
    r"|denied|\bwarn|segfault|xid|nan in the",
    re.IGNORECASE,
)
RAISED = re.compile(r"^(?:\S{1,80}: )?(?:[\w.]{0,80}(?:Error|Exception)\b|error: |fatal )")
CONFIGURATION = re.compile(
    r"\bserver_args=|\bServerArgs\(|\bNamespace\(|\w{0,20}LlmArgs\(|with config: model=|non-default args: "
    r"|\benv=\"?map\["
    r"|^(?:[^\n ]{0,80} )?(?:[a-z]\w{1,60}=[^=\n]{1,120}, ){3}"
)
"""The engine tells its whole configuration, names of options and all, or a terminal broke it into lines of three
options and more: no failure stands there."""
NATIVE_FRAME = re.compile(
    r"\s*(?:\[[^\]\s]{1,80}:\d{1,7}\] \[ ?\d{1,3}\] )?(?:\* )?(?:frame )?"
    r"(?:#\d{1,3}:?\s+(?:0x[\da-f]{4,}|\S{1,200} \()|\d{1,3}:?\s+(?:0x[\da-f]{6,}|/\S{1,300}\.so)"
    r"|(?:\.{0,2}/\S{1,300}|lib[\w.+-]{1,60}\.so[\d.]{0,12})\([^)\n]{0,300}\+0x[\da-f]{1,16}\)\s?\[0x"
    r"|(?:PC: )?@\s+0x[\da-f]{4,})"
)
"""A function on the stack of a native crash, as gdb, lldb, glibc, Open MPI, TensorRT-LLM or glog write it: its name
states nothing."""
INDENTED = re.compile(r"^\s{1,12}(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{1,60}(?:Error|Exception): \S")
TP_TAG = re.compile(r"\b(?:DP|TP|PP|EP)\d[\w ]*$")
COMMENT = re.compile(r"^#(?: (?P<text>.*)|#*)$")
HEADER = re.compile(r"^# ?[\w-]{2,30}: ")
HEADER_END = re.compile(r"^# ?-{3,}")


@dataclass(frozen=True, slots=True)
class Line:
    """A line as rules see it."""

    number: int
    text: str
    """As it can be quoted: without colours, with its prefix."""
    body: str
    """Without time, process and level."""
    who: str
    """The process or rank that wrote it; empty where the line does not say."""
    level: Level


def plain(text: str) -> str:
    """Without colours and control characters, and not longer than `LONGEST`."""
    if len(text) > LONGEST:
        text = f"{text[: LONGEST - TAIL]} ... {text[-TAIL:]}"
    return CONTROL.sub("", uncoloured(text)).rstrip()


def uncoloured(text: str) -> str:
    """Without colours: Python's own tracebacks are written in them, between the words that rules look for."""
    has_some = "\x1b" in text or "#0" in text or "1b[" in text or "^[[" in text
    return ANSI.sub("", text) if has_some else text


def read(number: int, text: str) -> Line:
    """Take a plain line apart."""
    level: Level = "none"
    who = ""
    position = 0
    is_without_levels = is_relayed = False
    for _ in range(MOST_PREFIXES):
        found = PREFIX.match(text, position)
        if not found or found.end() == position:
            break
        position = found.end()
        groups = found.groupdict()
        who = groups["who"] or groups["rank"] or _rank(groups["tag"]) or who
        is_without_levels = is_without_levels or groups["tag"] is not None
        is_relayed = is_relayed or groups["relay"] is not None
        named = next((groups[each] for each in LEVEL_GROUPS if groups[each]), None)
        level = _level(named) if named else level
        if groups["slog"] and ' error="' in text:  # Go writes what went wrong at the level of whoever tells it
            level = "error"
    body = _unindented(without_arguments(text[position:].removeprefix("^C").rstrip(BORDERED)))
    if level == "error" and body.startswith("Dumping "):
        level = "info"
    if level in {"none", "error"} and WARNING_CLASS.search(body):
        level = "warning"
    if is_relayed and level == "info" and RAISED.match(body):  # whoever relays a line does not judge it
        level = "none"
    if level == "none":
        level = _implied_level(body, is_without_levels=is_without_levels)
    return Line(number=number, text=text, body=body, who=who, level=level)


def plain_line(text: str) -> str:
    """What a line says, without time, process and level."""
    return read(1, plain(text)).body.strip()


def _unindented(body: str) -> str:
    """An exception stands at the margin: a log that was indented as a whole is read as if it were not."""
    return body.lstrip() if INDENTED.match(body) else body


def stated(body: str) -> str:
    """The part of a line that is not advice."""
    found = ADVICE.search(body)
    return body[: found.start()] if found else body


def _implied_level(body: str, *, is_without_levels: bool) -> Level:
    """Of a line that names none; SGLang's never do, so that the words of a message are all there is."""
    if CONFIGURATION.search(body) or NCCL_INFO.search(body):
        return "info"
    if RAISED.match(body):
        return "none"
    if not is_without_levels:
        return "warning" if FUNCTION_GOES_ON.match(body) else "none"
    is_survived = GOES_ON.search(body) or GAVE_UP_ON.match(body)
    return "none" if SOUNDS_WRONG.search(body) and not is_survived else "warning"


def _rank(tag: str | None) -> str | None:
    found = TP_TAG.search(tag) if tag else None
    return found.group() if found else None


def _level(name: str) -> Level:
    first = name[0].lower()
    return "error" if first == "c" else LEVELS.get(first, "none")
