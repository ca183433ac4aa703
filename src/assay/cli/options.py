"""Options that commands share."""

from __future__ import annotations

from pathlib import Path

import click

FOLDER = click.Path(path_type=Path, file_okay=False, resolve_path=True)
MACHINE_FILE = click.Path(path_type=Path, dir_okay=False)

folder = click.option(
    "--folder",
    "-f",
    type=FOLDER,
    default=Path(),
    show_default="the current one",
    help="The campaign's folder.",
)
as_json = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout, nothing else.")
plain = click.option("--plain", is_flag=True, help="Progress as plain lines instead of a live bar.")
