"""The report in a real browser, offline: nothing is fetched, every link leads somewhere, no width is too narrow."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import escape, unescape
from pathlib import Path
from typing import Any

import pytest

from assay.render.report import report_html
from assay.testing.sample_state import sample_commands, sample_latencies, sample_variants

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1400,900",
]
PROBE = """<script>
function look(frame) {
  const page = frame.contentDocument, root = page.documentElement;
  const links = [...page.querySelectorAll("a")].map(a => a.getAttribute("href"));
  return {
    width: frame.clientWidth, content: root.scrollWidth, letters: page.body.innerText.length,
    charts: [...page.querySelectorAll("svg")].filter(s => s.getBoundingClientRect().height > 40).length,
    links: links.length, broken: links.filter(h => !h.startsWith("#") || !page.getElementById(h.slice(1))),
    fetched: frame.contentWindow.refused,
    split: [...page.querySelectorAll(".flag")].filter(f => f.getClientRects().length > 1).map(f => f.textContent),
    crossing: [...page.querySelectorAll("svg")].flatMap(crossings),
  };
}
function crossings(svg) {
  const texts = [...svg.querySelectorAll("text")].map(t => [t.textContent, t.getBoundingClientRect()]);
  const frame = svg.getBoundingClientRect(), bad = [];
  texts.forEach(([a, p], i) => {
    if (p.left < frame.left - 1 || p.right > frame.right + 1) bad.push("outside: " + a);
    texts.slice(i + 1).forEach(([b, q]) => {
      if (p.left < q.right - 1 && q.left < p.right - 1 && p.top < q.bottom - 3 && q.top < p.bottom - 3)
        bad.push(a + " / " + b);
    });
  });
  return bad;
}
addEventListener("load", () => {
  document.title = JSON.stringify([...document.querySelectorAll("iframe")].map(look));
});
</script>"""
POLICY = """<head><meta http-equiv="Content-Security-Policy"
content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<script>var refused = [];
document.addEventListener("securitypolicyviolation", e => refused.push(e.blockedURI));</script>
"""
"""Lets a page use what it brings along and nothing else, and notes what else it asks for."""
OUTSIDE = "https://nowhere.invalid/picture.png"
WIDTHS = (390, 1280)
VARIANTS = sample_variants()

NEEDS_A_BROWSER = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine (Debian: apt install chromium)"),
]
pytestmark = NEEDS_A_BROWSER


def seen_in_a_browser(html: str, folder: Path) -> list[dict[str, Any]]:
    """What the browser makes of a page, at each width. Frames, because its window is never narrower than 500 pixels."""
    guarded = escape(html.replace("<head>", POLICY, 1))
    frames = "".join(
        f'<iframe srcdoc="{guarded}" style="border:0;width:{width}px;height:900px"></iframe>' for width in WIDTHS
    )
    outer = folder / "outer.html"
    outer.write_text(f"<!doctype html><title></title><meta charset=utf-8>{frames}{PROBE}", encoding="utf-8")
    command = [str(BROWSER), *FLAGS, f"--user-data-dir={folder / 'profile'}", "--dump-dom", outer.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    title = re.search(r"<title>(\[.*?\])</title>", done.stdout, re.DOTALL)
    assert title is not None, done.stderr[-500:]
    return list(json.loads(unescape(title[1])))


def assert_drawn_whole(html: str, folder: Path, num_charts: int) -> list[dict[str, Any]]:
    """No page is wider than its window, breaks a link or a flag, fetches anything, or draws words over others."""
    pages = seen_in_a_browser(html, folder)
    assert [page["width"] for page in pages] == list(WIDTHS)
    for page in pages:
        assert page["content"] <= page["width"]
        assert page["charts"] == num_charts
        assert page["broken"] == []
        assert page["fetched"] == []
        assert page["crossing"] == []
        assert page["split"] == []
    return pages


@pytest.mark.parametrize("name", ["finished", "only-blocked"])
def test_the_report_is_drawn_whole_offline_and_never_scrolls_sideways(name: str, tmp_path: Path) -> None:
    state = VARIANTS[name]
    latencies = sample_latencies() if state.headline else None
    commands = {**sample_commands(), "long": "a" * 400}
    html = report_html(state, launch_commands=commands, latencies=latencies)

    for page in assert_drawn_whole(html, tmp_path, 6 if name == "finished" else 0):
        assert page["letters"] > 2000
        assert page["links"] > 10


def test_a_page_that_is_too_wide_fetches_leads_nowhere_or_overlaps_would_be_found(tmp_path: Path) -> None:
    chart = '<svg viewBox="0 0 100 50"><text x="9" y="20">one</text><text x="12" y="22">two</text></svg>'
    flag = '<div style="width:60px"><span class="flag">--ctx-size-of-all</span></div>'
    html = f'<head></head><div style="width:2000px">x</div><a href="#gone">y</a><img src="{OUTSIDE}">{chart}{flag}'

    (narrow, _) = seen_in_a_browser(html, tmp_path)

    assert narrow["content"] > narrow["width"]
    assert narrow["broken"] == ["#gone"]
    assert narrow["fetched"] == [OUTSIDE]
    assert narrow["crossing"] == ["one / two"]
    assert narrow["split"] == ["--ctx-size-of-all"]
