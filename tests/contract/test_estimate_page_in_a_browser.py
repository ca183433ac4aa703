"""The page of an estimate in a real browser, offline: whole at any width, and no words on top of others."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.render.estimate_page import estimate_html
from assay.roofline.serving import load_at_context
from tests.contract.test_report_in_a_browser import NEEDS_A_BROWSER, assert_drawn_whole
from tests.unit import estimate_records as made

PAGES = {
    "requests": (estimate_html(made.report()), 3),
    "one point at a context": (estimate_html(made.report((8,), load_at_context(0))), 2),
}
"""Page, and how many charts it has."""

pytestmark = NEEDS_A_BROWSER


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_drawn_whole_offline_and_never_scrolls_sideways(name: str, tmp_path: Path) -> None:
    html, num_charts = PAGES[name]
    assert_drawn_whole(html, tmp_path, num_charts)
