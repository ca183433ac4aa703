"""What gets out: styles of ours, and no control code of a foreign text."""

from __future__ import annotations

import pytest
from rich.table import Table
from rich.text import Text

from assay.cli.failure import Trouble, tell
from assay.cli.output import show

Capture = pytest.CaptureFixture[str]


def test_no_control_code_of_a_foreign_text_gets_out(capsys: Capture) -> None:
    table = Table("name")
    table.add_row("a\x1b]0;title\x07b")
    show("one\x1b[31m\ttwo\nthree", Text("red \x9b31m \u202e"), table)
    tell(Trouble(message="broken \x1b[2J", hint="look\x00", exit_code=2), as_json=False)
    captured = capsys.readouterr()

    assert not set("\x00\x07\x1b\x9b\u202e") & set(captured.out + captured.err)
    assert "one�[31m\ttwo\nthree\n" in captured.out
    assert "broken �[2J" in captured.err
