"""What gets out: styles of ours, and no control code of a foreign text."""

from __future__ import annotations

import pytest
from rich.table import Table
from rich.text import Text

from assay.cli.failure import Trouble, tell
from assay.cli.output import say, show, show_exactly

Capture = pytest.CaptureFixture[str]


def test_no_control_code_of_a_foreign_text_gets_out(capsys: Capture) -> None:
    table = Table("name")
    table.add_row("a\x1b]0;title\x07b")
    show("one\x1b[31m\ttwo\nthree", Text("red \x9b31m \u202e"), table)
    tell(Trouble(message="broken \x1b[2J", hint="look\x00", exit_code=2), as_json=False)
    say("warning: /m/\x1b[31m.gguf does not exist")
    captured = capsys.readouterr()

    assert not set("\x00\x07\x1b\x9b\u202e") & set(captured.out + captured.err)
    assert "one�[31m\ttwo\nthree\n" in captured.out
    assert "broken �[2J" in captured.err
    assert "warning: /m/�[31m.gguf does not exist\n" in captured.err


def test_what_is_to_be_used_word_for_word_gets_out_so_where_no_terminal_would_obey_it(capsys: Capture) -> None:
    show_exactly("llama-server --alias '\x1b[31m'\n")

    assert capsys.readouterr().out == "llama-server --alias '\x1b[31m'\n"
