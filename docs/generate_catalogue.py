"""Write docs/catalogue.md from the entries themselves; `--check` only says whether it is up to date.

python docs/generate_catalogue.py [--check]
"""  # noqa: INP001 - a script beside what it writes

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from assay.catalogue.loader import EntryFile, builtin_folder, load_files
from assay.catalogue.verify import checked_versions
from assay.flags.dialect import dialects
from assay.records.hypothesis import Optimization

PAGE = Path(__file__).with_name("catalogue.md")
TIERS = {1: "Tier 1: flags", 2: "Tier 2: configuration, layout, model artifact", 3: "Tier 3: kernels and code"}
HEAD = """\
# The catalogue

Written by `docs/generate_catalogue.py` from `src/assay/data/optimizations`: change the entries, not this page.
`assay catalogue show ENTRY` tells everything about one, `assay catalogue --applies` holds all of them against a target;
how to add one is in [catalogue-entry.md](catalogue-entry.md).

{count} entries. A prior is a range of the relative effect on the objective that somebody would bet on before measuring;
it is no result. Claims whose source is "none" are what everybody says and nobody wrote down. "Needs work" means that
something has to be made before the entry can run: it is written up and priced all the same. The ceiling is the
mechanism of the estimate that bounds the gain on a target (`assay estimate` shows it); "-" where no term of it does.

Every flag, value and variable is checked in CI against what is recorded of each engine: {recorded}.
"""


def page() -> str:
    """The whole page."""
    files = sorted(load_files([builtin_folder()]), key=lambda one: (_first(one).tier, one.id))
    recorded = ", ".join(
        f"{dialects()[engine].title} ({len(checked_versions(engine))} {what})"
        for engine, what in (
            ("sglang", "wheels"),
            ("vllm", "wheels"),
            ("llamacpp", "build's help"),
            ("trtllm", "states of its command line"),
        )
    )
    lines = [HEAD.format(count=len(files), recorded=recorded)]
    for tier, title in TIERS.items():
        lines += [f"## {title}", "", "| entry | engines | acts on | ceiling | prior | answers | sources |"]
        lines += ["|---|---|---|---|---|---|---|"]
        lines += [_row(one) for one in files if _first(one).tier == tier]
        lines += [""]
    lines += ["## How each is set", ""]
    for one in files:
        lines += [f"### {one.id}", "", f"{_first(one).title}. {_first(one).mechanism}", "", *_settings(one), ""]
    return "\n".join(lines)


def _row(file: EntryFile) -> str:
    first = _first(file)
    engines = ", ".join(dialects()[name].title for name in file.engines)
    low, high = (100 * bound for bound in first.predicted)
    cells = (
        f"[{file.id}](#{file.id})",
        engines,
        first.mechanism_id or "-",
        first.ceiling or "-",
        f"{low:+.3g} to {high:+.3g}%",
        first.numerics,
        _sources(one.source for one in first.reported),
    )
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _sources(texts: Iterable[str]) -> str:
    """Who says so; "none" where everybody does and nobody wrote it down."""
    told = list(texts)
    named = dict.fromkeys(text.removeprefix("prior: ") for text in told if not text.startswith("no source"))
    return "; ".join(named) or ("none" if told else "a guess of ours")


def _settings(file: EntryFile) -> Iterator[str]:
    for engine, variants in file.engines.items():
        for one in variants:
            yield f"- {dialects()[engine].title}{f' `{one.versions}`' if one.versions else ''}: {_change(one)}"


def _change(one: Optimization) -> str:
    words = [f"`{name}={value}`" for name, value in one.env.items()]
    words += [_flag(name, value) for name, value in one.flags.items()]
    words += [f"without `{name}`" for name in one.remove_flags]
    words += [f"the model made again in {one.artifact.type}"] if one.artifact else []
    words += [f"searched: {', '.join(f'`{knob.flag}`' for knob in one.dial.knobs)}"] if one.dial else []
    return ", ".join(words) or f"needs work: {one.needs_work}"


def _flag(name: str, value: object) -> str:
    if isinstance(value, bool):
        return f"`{name}`" if value else f"`{name}` off"
    return f"`{name} {value}`"


def _first(file: EntryFile) -> Optimization:
    return next(iter(file.engines.values()))[0]


def main() -> int:
    """Write the page, or say what is wrong with it."""
    text = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write(f"error: {PAGE} is not what the entries say\n\nhint: python {Path(__file__)}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
