"""Conversations of several turns: each session's turns are sent one after the other, with the server's own answers.

Two kinds of rows, in a JSON list or as JSONL:

- what was really said: `{"conversations": [{"from", "value"}, ...]}` as ShareGPT has it, or `{"messages": [{"role",
  "content"}, ...]}`. Each question with an answer is a turn, until something comes out of turn; the answer's estimated
  length is what is asked for. The order is drawn by the seed, unless rows have instants.
- what is to be said: `{"turns": [{"content" or "user": text, "output_tokens": n}, ...], "think_s": x, "system": text}`,
  all but the turns optional. Kept in the file's order.

Any row may have `at_s` or `timestamp` (milliseconds); the order is then that of time.
"""

from __future__ import annotations

from collections import Counter

from assay.load.workloads.files import HashedFile, check_not_empty
from assay.load.workloads.prompts import Prompts
from assay.load.workloads.rows import Row, check_all_or_none, entries_as_rows
from assay.load.workloads.sessions import Talk, TalkSource, Turn, in_time_order
from assay.load.workloads.sharegpt import pairs, shuffled, spoken
from assay.records.bench import Dataset

EXAMPLE = '{"turns": [{"user": "Hi", "output_tokens": 32}, {"user": "And then?", "output_tokens": 64}], "think_s": 1}'


def read(workload: Dataset, seed: int, prompts: Prompts) -> TalkSource:
    """Read the file.

    Raises:
        UsageError: it cannot be read, is malformed, or holds no conversation.
    """
    file = HashedFile(workload.path)
    skipped: Counter[str] = Counter()
    talks: list[Talk] = []
    scripted = False
    for row in entries_as_rows(file, EXAMPLE):
        scripted = scripted or row.has("turns")
        talk = _scripted(row) if row.has("turns") else _recorded(row, prompts)
        if talk.turns:
            talks.append(talk)
        else:
            skipped["no question with an answer"] += 1
    check_not_empty(file.path, len(talks), skipped, EXAMPLE)
    instants_s = [talk.at_s for talk in talks]
    check_all_or_none(file.path, instants_s)
    if scripted or instants_s[0] is not None:
        talks = in_time_order(talks, workload.max_requests)
    else:
        talks = shuffled(talks, seed, workload.max_requests)
    return TalkSource(talks, sha256=file.sha256, skipped=skipped)


def _scripted(row: Row) -> Talk:
    turns = tuple(
        Turn(prompt=turn.text("content", "user"), output_tokens=turn.tokens("output_tokens"))
        for turn in row.inner("turns")
    )
    if not turns:
        row.fail("no turns", "one at least")
    return Talk(
        turns=turns,
        system=row.text("system") if row.has("system") else None,
        at_s=row.instant_s(),
        think_s=row.seconds("think_s") if row.has("think_s") else 0.0,
    )


def _recorded(row: Row, prompts: Prompts) -> Talk:
    if row.has("messages"):
        said = spoken(row, "messages", speaker="role", words="content")
    else:
        row.value("conversations", "messages", "turns")
        said = spoken(row, "conversations", speaker="from", words="value")
    system = said[0][1] if said and said[0][0] == "system" else None
    turns = tuple(
        Turn(prompt=question, output_tokens=prompts.estimate_tokens(answer)) for question, answer in pairs(said)
    )
    return Talk(turns=turns, system=system, at_s=row.instant_s())
