"""What every page has in common: a flag stays in one piece, and what is copied is what was written."""

from __future__ import annotations

import re

import pytest

from assay.render.pages import whole_flags


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("vllm serve --max-num-seqs 64 -tp 2", ["--max-num-seqs", "-tp"]),
        ("<code>--ctx-size 4096</code>, or (--no-mmap).", ["--ctx-size", "--no-mmap"]),
        ('<pre>a \\\n  --speculative-config &#39;{"a": -1}&#39;</pre>', ["--speculative-config"]),
        ("a range of 3-5, non-streaming, x--y, -5 to +10%, a - b", []),
        ('<a title="--in-a-tooltip">x</a><svg><title>--t-t</title><text>--in-a-chart</text></svg>', []),
        ("<title>--head</title><style>.a{--b-c:1}</style>", []),
        (f"--{'long-' * 12}flag", []),
    ],
)
def test_a_flag_is_marked_as_one_word_and_nothing_else_is(text: str, kept: list[str]) -> None:
    html = whole_flags(text)

    assert re.findall(r'<span class="flag">(.*?)</span>', html) == kept
    assert re.sub(r'<span class="flag">(.*?)</span>', r"\1", html) == text
