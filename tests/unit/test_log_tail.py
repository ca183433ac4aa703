"""A growing log is read on, never anew."""

from __future__ import annotations

import re
from pathlib import Path

from assay.engines.log_tail import LogTail

READY = re.compile(r"^ready$")
LOADED = re.compile(r"loaded (\d+)")


def grow(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as log:
        log.write(text)


def test_what_was_searched_before_is_not_searched_again(tmp_path: Path) -> None:
    path = tmp_path / "log"
    grow(path, "wait!\n")
    log = LogTail(path)
    assert not log.has_said(READY)

    path.write_text("ready\nmore\n", encoding="utf-8")  # as long as before and longer: its beginning was read already

    assert not log.has_said(READY)
    grow(path, "ready\n")
    assert log.has_said(READY)
    assert log.has_said(READY)


def test_each_question_has_its_own_place_and_new_lines_another(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = LogTail(path)
    grow(path, "loaded 1\nready\n")

    assert log.has_said(READY)
    assert log.has_said(LOADED)
    assert log.new_lines() == ["loaded 1", "ready"]
    assert log.new_lines() == []


def test_a_line_counts_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = LogTail(path)
    grow(path, "rea")
    assert not log.has_said(READY)
    grow(path, "dy")
    assert not log.has_said(READY)
    grow(path, "\r\nnext")
    assert log.has_said(READY)
    assert log.text() == "ready\r\nnext".replace("\r\n", "\n")


def test_a_log_that_was_cut_is_read_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = LogTail(path)
    grow(path, "one\ntwo\nthree\n")
    assert len(log.new_lines()) == 3
    path.write_text("four\n", encoding="utf-8")
    assert log.new_lines() == ["four"]


def test_a_log_that_is_not_there_says_nothing(tmp_path: Path) -> None:
    log = LogTail(tmp_path / "log")
    assert (log.new_lines(), log.has_said(READY), log.text()) == ([], False, "")
