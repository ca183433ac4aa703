"""The reference in docs/ is what the commands say."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "docs" / "generate_cli.py"


def generate(script: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(script), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_reference_is_up_to_date() -> None:
    checked = generate(SCRIPT, "--check")

    assert checked.returncode == 0, checked.stderr


def test_a_stale_or_missing_reference_is_found_and_written_anew(tmp_path: Path) -> None:
    script = Path(shutil.copy(SCRIPT, tmp_path))
    page = tmp_path / "cli.md"

    assert generate(script, "--check").returncode == 1
    assert generate(script).returncode == 0
    assert generate(script, "--check").returncode == 0
    page.write_text(page.read_text(encoding="utf-8").replace("--max-runs", "--most-runs"), encoding="utf-8")
    stale = generate(script, "--check")
    assert (stale.returncode, stale.stdout) == (1, "")
    assert "hint: python " in stale.stderr
