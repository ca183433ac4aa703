"""Requests of one's own: JSONL, one request a line.

`{"prompt": text or token ids, "output_tokens": n}`, where `output_len` and `max_tokens` mean the same as
`output_tokens`; or `{"messages": [{"role": "system", "content": ...}, {"role": "user", "content": ...}], ...}` with
one message of the user, after one of the system or none: answers already given cannot be sent as such. An instant may
be given as `at_s` (seconds) or `timestamp` (milliseconds), in all lines or in none; with instants the order is that of
time, else that of the file. Other keys are ignored.
"""

from __future__ import annotations

from assay.errors import UsageError
from assay.load.workloads.files import HashedFile, check_not_empty, shown
from assay.load.workloads.prompts import Prompts
from assay.load.workloads.rows import Row, check_all_or_none, lines_as_rows
from assay.load.workloads.sessions import Talk, TalkSource, Turn, in_time_order
from assay.records.bench import Dataset

EXAMPLE = '{"prompt": "Name a river.", "output_tokens": 64}'
MAX_TOKEN_ID = 2**31 - 1


def read(workload: Dataset, seed: int, prompts: Prompts) -> TalkSource:  # noqa: ARG001 - the file says it all
    """Read the file.

    Raises:
        UsageError: it cannot be read, is malformed, or is empty.
    """
    file = HashedFile(workload.path)
    talks = [_talk(row) for row in lines_as_rows(file, EXAMPLE)]
    check_not_empty(file.path, len(talks), {}, EXAMPLE)
    check_all_or_none(file.path, [talk.at_s for talk in talks])
    return TalkSource(in_time_order(talks, workload.max_requests), sha256=file.sha256, skipped={})


def _talk(row: Row) -> Talk:
    system, prompt = _messages(row) if row.has("messages") else (None, _prompt(row))
    num_output = row.tokens("output_tokens", "output_len", "max_tokens")
    return Talk(turns=(Turn(prompt=prompt, output_tokens=num_output),), system=system, at_s=row.instant_s())


def _prompt(row: Row) -> list[int] | str:
    value = row.value("prompt", "messages")
    if not isinstance(value, list):
        prompt = row.text("prompt")
        if not prompt:
            row.fail("an empty text as prompt", "a text with something in it")
        return prompt
    ids = [token for token in value if type(token) is int and 0 <= token <= MAX_TOKEN_ID]
    if not ids or len(ids) < len(value):
        row.fail(f"{shown(value)} as prompt", "a text, or a list of token ids (whole numbers, one at least)")
    return ids


def _messages(row: Row) -> tuple[str | None, str]:
    """The message of the system, if there is one, and that of the user."""
    said = [(message.text("role"), message.text("content")) for message in row.inner("messages")]
    roles = [role for role, _ in said]
    if roles == ["user"]:
        return None, said[0][1]
    if roles == ["system", "user"]:
        return said[0][1], said[1][1]
    raise UsageError(
        f"{row.path}, {row.place}: found messages of {', '.join(map(shown, roles)) or 'nobody'}, "
        f"expected one of the user, after one of the system or none",
        hint=f"conversations:{row.path} plays several turns, with the server's own answers",
    )
