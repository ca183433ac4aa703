"""Commands that come before measuring: init, assess, plan."""

from __future__ import annotations

from pathlib import Path

import click

from assay import api
from assay.cli import options
from assay.cli.command import TeachingCommand
from assay.cli.failure import fail_check
from assay.cli.output import say, show, show_json
from assay.cli.questions import CONCURRENCY, GivenTarget, ask, model_path
from assay.errors import UsageError

MACHINE_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(
    cls=TeachingCommand,
    needs="Nothing but a model file, or the launch command or URL of the server in use today.",
    examples=[
        "assay init --model qwen.gguf --concurrency 16",
        "assay init --command 'llama-server -m qwen.gguf -c 8192 -np 4'",
        "assay init --url http://127.0.0.1:8080",
        "assay init --url https://api.example.com --model llama-3.1-8b --api-key-env TEAM_API_KEY",
        "assay init --folder my-campaign --model embedded",
    ],
    exits={0: "written", 2: "there is an assay.toml already, or no such model or server", 6: "it cannot be written"},
)
@options.folder
@options.as_json
@click.option(
    "--model",
    help="Path of a GGUF file, or `embedded`: a small model that comes as a package. With --url: its name there.",
)
@click.option("--command", "launch", help="Today's launch command, as one quoted string: flags and model are taken.")
@click.option(
    "--url",
    help="A running server. llama.cpp tells its model, slots and context, and is started again; every other one is"
    " measured as it is.",
)
@click.option("--api-key-env", metavar="NAME", help="With --url: environment variable that holds the server's API key.")
@click.option(
    "--executable",
    show_default="llama-server in PATH, else the embedded one",
    help="With --model: the engine's program, or `embedded`.",
)
@click.option("--concurrency", type=CONCURRENCY, show_default="8", help="With --model: requests in flight.")
@click.option("--name", show_default="the folder's", help="Name of the campaign.")
def init(
    folder: Path,
    as_json: bool,
    name: str | None,
    launch: str | None,
    url: str | None,
    api_key_env: str | None,
    model: str | None,
    executable: str | None,
    concurrency: int | None,
) -> None:
    """Write a commented assay.toml: the question, declared before anything is measured.

    Give one of --model, --command and --url; with none of them, at a terminal, it asks. Then read the file: target,
    workload, objective, budget and error rates stand once the campaign has been planned.
    """
    given = GivenTarget(
        model=model, launch=launch, url=url, executable=executable, concurrency=concurrency, api_key_env=api_key_env
    )
    path = write_spec(folder, name or folder.name, given)
    if as_json:
        show_json({"spec": str(path)})
    else:
        show(f"wrote {path}", "read it, then: assay plan")


def write_spec(folder: Path, name: str, given: GivenTarget) -> Path:
    """Write assay.toml from whichever source was given.

    Raises:
        UsageError: several sources, or none and nobody to ask; see also the verbs.
    """
    given.refuse_contradictions()
    if given.url:
        return api.init_from_url(folder, given.url, name=name, model=given.model, api_key_env=given.api_key_env)
    if given.launch:
        try:
            return api.init_from_command(folder, given.launch, name=name)
        except ValueError as error:  # an open quote, or a value that no field takes
            hint = "quote the whole command once: --command 'llama-server --model FILE.gguf ...'"
            raise UsageError(f"the launch command cannot be read: {error}", hint=hint) from error
    if not given.model:
        if (folder / "assay.toml").exists():
            raise UsageError(f"{folder / 'assay.toml'} exists already", hint="edit it, or give another --folder")
        given = ask(given)
    from assay.records.spec import CampaignSpec, Target, Workload

    target = Target(model=model_path(given.model or ""), executable=given.executable)
    workload = Workload(concurrency=given.concurrency) if given.concurrency else Workload()
    return api.init(folder, CampaignSpec(name=name, target=target, workload=workload))


@click.command(
    cls=TeachingCommand,
    needs="Nothing; in a campaign's folder it also looks at the campaign's target and record.",
    examples=[
        "assay assess",
        "assay assess --folder my-campaign --json",
        "assay assess --save our-box.json",
        "assay assess --machine our-box.json",
    ],
    exits={
        0: "a campaign can run here",
        1: "something found here prevents it",
        2: "assay.toml or the machine's file is wrong",
        6: "the machine's file cannot be written",
    },
)
@options.folder
@options.as_json
@click.option("--machine", type=MACHINE_FILE, help="Analyse the machine in this file, written by --save elsewhere.")
@click.option("--save", type=MACHINE_FILE, help="Write what is seen of this machine to a file: no names, no secrets.")
def assess(folder: Path, as_json: bool, machine: Path | None, save: Path | None) -> None:
    """Take stock: machine, GPUs and links, software, running servers, engine, model, findings.

    Findings say what would spoil a measurement, with the evidence and a remedy. Starts and stops nothing: servers that
    listen on this machine are asked over loopback what they are. Numbers are pooled only under one fingerprint.
    """
    found = api.assess(folder, machine=machine, save=save)
    if as_json:
        fingerprint = found.machine.fingerprint
        show_json({**found.model_dump(mode="json"), "fingerprint": fingerprint, "blocked": found.blocked})
    else:
        from assay.render.assessment import assessment_view

        show(assessment_view(found))
        if save:
            say(f"wrote {save}; read it elsewhere with: assay assess --machine {save.name}")
    if found.blocked:
        where = "on that machine" if machine else "here"
        fail_check(f"a campaign cannot run {where} yet", hint="see what was found, listed above", as_json=as_json)


@click.command(
    cls=TeachingCommand,
    needs="assay.toml, written by `assay init`, and the engine it names.",
    examples=[
        "assay plan",
        "assay plan --folder my-campaign --json",
        "assay plan --explain mscclpp",
    ],
    exits={
        0: "planned",
        2: "assay.toml or a document is wrong, or the question changed after it was asked",
        4: "the engine is missing",
        6: "the record cannot be read or written",
    },
)
@options.folder
@options.as_json
@click.option("--explain", metavar="ENTRY", help="Why this entry is planned, blocked or skipped, with the numbers.")
def plan(folder: Path, as_json: bool, explain: str | None) -> None:
    """Write each optimization that applies here up as a document, and the todo.

    Documents that are there already are read back with your edits (priority, approval, cancellation). Flags that the
    installed engine does not have are blocked now, with the reason, before they cost anything. Starts no server.
    """
    from assay.api.plan import assumed_launch_s, shortfall

    state = api.plan(folder)
    if explain is not None:
        _explain(folder, explain, as_json=as_json)
        return
    items = api.todo(folder)
    left = api.next_step(folder).remaining_s
    short = shortfall(state)
    if as_json:
        todo = [item.model_dump(mode="json") for item in items]
        show_json({"todo": todo, "remaining_s": left, "warnings": [short] if short else []})
        return
    from assay.render.terminal import todo_table
    from assay.render.words import duration_words

    show(todo_table(items))
    documents = "one document" if len(items) == 1 else f"{len(items)} documents"
    say(f"{documents} in {folder / 'improvements'}; read and edit")
    if num_passed_over := len(api.passed_over(folder)):
        say(f"{num_passed_over} catalogue entries do not apply here; why: assay todo --all")
        say("of one entry, with the numbers: assay plan --explain ENTRY")
    if short:
        hint = "raise budget.total_s or lower what is named above, in a new folder: this question stands"
        say(f"warning: {short}\nhint: {hint}")
    launch_s = assumed_launch_s(state)
    launches = f", if a launch takes {duration_words(launch_s)}" if launch_s else ""
    say(f"measuring takes about {duration_words(left)}{launches}: assay run")


def _explain(folder: Path, name: str, *, as_json: bool) -> None:
    from assay.api.plan_explained import explained

    found = explained(folder, name)
    if as_json:
        show_json(
            {
                **found.reasoning.model_dump(mode="json"),
                "surroundings": found.plan.surroundings.model_dump(mode="json"),
                "worth": found.worth.model_dump(mode="json") if found.worth else None,
                "corrected": found.corrected.model_dump(mode="json") if found.corrected else None,
            }
        )
        return
    from assay.render.reasoning_view import reasoning_view

    show(reasoning_view(found.reasoning, found.plan, found.worth, found.corrected))
