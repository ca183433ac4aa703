"""The page of an estimate in a real browser, offline: whole at any width, and no words on top of others."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.render.estimate_page import estimate_html
from assay.roofline.serving import load_at_context
from tests.contract.test_report_in_a_browser import BROWSER, WIDTHS, seen_in_a_browser
from tests.unit import estimate_records as made

PAGES = {
    "requests": (estimate_html(made.report()), 3),
    "one point at a context": (estimate_html(made.report((8,), load_at_context(0))), 2),
}
"""Page, and how many charts it has."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine (Debian: apt install chromium)"),
]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_drawn_whole_offline_and_never_scrolls_sideways(name: str, tmp_path: Path) -> None:
    html, num_charts = PAGES[name]

    pages = seen_in_a_browser(html, tmp_path)

    assert [page["width"] for page in pages] == list(WIDTHS)
    for page in pages:
        assert page["content"] <= page["width"]
        assert page["charts"] == num_charts
        assert page["broken"] == []
        assert page["fetched"] == []
        assert page["crossing"] == []
