"""The catalogue of optimizations: listed, explained, checked, applied to a target."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from assay.cli import options
from assay.cli.command import TeachingCommand
from assay.cli.failure import fail_check
from assay.cli.output import say, show, show_json
from assay.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.api.catalogue import TargetQuestion, Wanted
    from assay.records.hypothesis import Optimization

ENGINES = click.Choice(["llamacpp", "vllm", "sglang", "trtllm"])
LOAD = click.IntRange(min=1)


@click.command(
    cls=TeachingCommand,
    needs="Nothing: recorded flags stand for engines that are not installed here.",
    examples=[
        "assay catalogue",
        "assay catalogue --engine vllm --tier 1 --mechanism communication",
        "assay catalogue show mscclpp",
        "assay catalogue --applies --engine vllm --model qwen3-30b-a3b --on h200 --concurrency 64",
        "assay catalogue show mscclpp --on 8xh200 --model glm-5 --launch 'sglang serve --model-path GLM-5 --tp 8'",
        "assay catalogue check my-entries",
    ],
    exits={
        0: "shown, or nothing wrong with the folder",
        1: "the folder's entries name flags that those versions lack, or require themselves",
        2: "no such entry, model, box or engine; a file that is no entry, with its key",
    },
)
@click.argument("action", type=click.Choice(["list", "show", "check"]), default="list", metavar="[list|show|check]")
@click.argument("name", required=False, metavar="[ENTRY|FOLDER]")
@options.folder
@options.as_json
@click.option("--engine", type=ENGINES, help="Only entries for this engine.")
@click.option("--tier", type=click.IntRange(1, 3), help="1 flags, 2 configuration or artifacts, 3 code and kernels.")
@click.option("--mechanism", help="Only what acts on this: communication, kernel, kv-bytes ...")
@click.option("--applies", is_flag=True, help="Hold them against a target: what is worth trying there, and why not.")
@click.option("--model", help="Of the target: a name, file or folder; the launch command's when absent.")
@click.option("--on", metavar="BOX", show_default="this machine", help="Of the target: a box, as 8xRTX-PRO-6000.")
@click.option("--launch", default="", metavar="COMMAND", help="Of the target: today's launch command, quoted once.")
@click.option("--engine-version", show_default="newest recorded", help="Of the target.")
@click.option("--concurrency", type=LOAD, default=8, help="Of the target's load: requests in flight.")
@click.option("--input", "input_tokens", type=LOAD, default=512, help="Of the target's load: tokens of a prompt.")
@click.option(
    "--shared-prefix",
    "shared_prefix_tokens",
    type=click.IntRange(min=0),
    default=0,
    help="Of the target's load: tokens before those, alike for all prompts.",
)
@click.option("--output", "output_tokens", type=LOAD, default=256, help="Of the target's load: tokens of an answer.")
def catalogue(
    action: str,
    name: str | None,
    *,
    folder: Path,
    as_json: bool,
    engine: str | None,
    tier: int | None,
    mechanism: str | None,
    applies: bool,
    model: str | None,
    on: str | None,
    launch: str,
    engine_version: str | None,
    concurrency: int,
    input_tokens: int,
    shared_prefix_tokens: int,
    output_tokens: int,
) -> None:
    """List what is known to speed inference up, explain an entry, or check a folder of your own entries.

    A campaign's own folders of entries (policy.catalogue in its assay.toml) are listed with Assay's.

    With --applies (or --on, --model, --launch) they are held against a target, as `assay plan` does it:
    conditions, ceilings by calculation, what is known of the flags. Nothing is started; no engine need be here.
    """
    from assay.api.catalogue import TargetQuestion, Wanted, folders_of

    if action == "check":
        _check(Path(name) if name else None, as_json=as_json)
        return
    extra = folders_of(folder)
    question = TargetQuestion(
        engine=engine, version=engine_version, model=model, on=on, launch=launch, concurrency=concurrency,
        input_tokens=input_tokens, shared_prefix_tokens=shared_prefix_tokens, output_tokens=output_tokens,
        folders=extra,
    )  # fmt: skip
    target = question if applies or on or model or launch else None
    if action == "show":
        _show(name, extra, target, as_json=as_json)
    elif name is not None:
        raise UsageError(f"{name!r} belongs to no action", hint=f"assay catalogue show {name}")
    elif target is not None:
        _applied(target, Wanted(tier=tier, mechanism=mechanism), as_json=as_json)
    else:
        _list(Wanted(engine=engine, tier=tier, mechanism=mechanism), extra, as_json=as_json)


def _list(wanted: Wanted, extra: Sequence[Path], *, as_json: bool) -> None:
    from assay.api.catalogue import Wanted, listed

    found = listed(wanted, extra)
    if not found and wanted.mechanism:
        files = listed(Wanted(), extra)
        known = sorted(
            {one.mechanism_id for file in files for each in file.engines.values() for one in each if one.mechanism_id}
        )
        say(f"what entries act on: {', '.join(known)}")
    if as_json:
        show_json([_entry_json(one.id, one.engines) for one in found])
        return
    from assay.render.catalogue_view import catalogue_table

    show(catalogue_table({one.id: one.engines for one in found}))
    say(f"{len(found)} entries; one of them: assay catalogue show ENTRY")


def _show(name: str | None, extra: Sequence[Path], target: TargetQuestion | None, *, as_json: bool) -> None:
    from assay.api.catalogue import applied, shown

    if name is None:
        raise UsageError("which entry?", hint="assay catalogue lists them; then: assay catalogue show ENTRY")
    entry = shown(name, extra)
    plan = applied(target) if target else None
    thought = plan.reasoning.entries.get(name) if plan else None
    if plan and thought is None:
        raise UsageError(f"{name} says nothing of that engine", hint=f"it is for {', '.join(entry.engines)}")
    if as_json:
        here = {"reasoning": thought.model_dump(mode="json")} if thought else {}
        show_json({**_entry_json(name, entry.engines), **here})
        return
    from assay.render.catalogue_view import entry_view
    from assay.render.reasoning_view import reasoning_view

    show(entry_view(name, entry.engines))
    if plan and thought:
        show("", reasoning_view(thought, plan.reasoning))


def _applied(target: TargetQuestion, wanted: Wanted, *, as_json: bool) -> None:
    from assay.api.catalogue import applied, listed

    plan = applied(target)
    kept = {one.id for one in listed(wanted, target.folders)}
    entries = {name: thought for name, thought in plan.reasoning.entries.items() if name in kept}
    reasoning = plan.reasoning.model_copy(update={"entries": entries})
    if as_json:
        show_json(reasoning.model_dump(mode="json"))
        return
    from assay.render.catalogue_view import applied_list

    show(applied_list(reasoning))


def _check(folder: Path | None, *, as_json: bool) -> None:
    from assay.api.catalogue import checked

    if folder is None:
        raise UsageError("which folder?", hint="assay catalogue check FOLDER")
    problems = checked(folder)
    errors = [one for one in problems if one.severity == "error"]
    if as_json:
        fields = ("severity", "entry", "engine", "versions", "what")
        show_json([{key: getattr(one, key) for key in fields} for one in problems])
    else:
        for one in problems:
            show(f"{one.severity}: {one}")
        if not problems:
            show(f"{folder}: nothing wrong")
    if errors:
        fail_check(
            f"{len(errors)} error{'s' if len(errors) > 1 else ''} in the folder's entries, listed above",
            hint="mend the keys that are named; where a version lacks a flag, narrow `versions` or give a variant",
            as_json=as_json,
        )


def _entry_json(name: str, engines: Mapping[str, Sequence[Optimization]]) -> dict[str, object]:
    variants = {engine: [one.model_dump(mode="json") for one in each] for engine, each in engines.items()}
    return {"id": name, "engines": variants}
