"""The pages of load tests in a real browser, offline: whole at any width, and no words on top of others."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.render.bench_report import bench_html, compare_html, sweep_html
from tests.contract.test_report_in_a_browser import NEEDS_A_BROWSER, assert_drawn_whole
from tests.unit import bench_records as made

PAGES = {
    "closed": (bench_html(made.result()), 5),
    "open": (bench_html(made.open_loop()), 5),
    "unmeasured": (bench_html(made.unmeasured()), 0),
    "sweep": (sweep_html(made.sweep((1, 2, 4, 8, 16, 32, 64, 128, 256), 6)), 2),
    "compare": (compare_html(made.comparison()), 2),
}
"""Page, and how many charts it has."""

pytestmark = NEEDS_A_BROWSER


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_drawn_whole_offline_and_never_scrolls_sideways(name: str, tmp_path: Path) -> None:
    html, num_charts = PAGES[name]
    assert_drawn_whole(html, tmp_path, num_charts)
