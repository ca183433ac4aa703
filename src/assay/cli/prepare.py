"""Commands that come before planning: init, assess."""

from __future__ import annotations

from pathlib import Path

import click

from assay import api
from assay.cli import options
from assay.cli.command import TeachingCommand
from assay.cli.failure import fail_check
from assay.cli.options import MACHINE_FILE
from assay.cli.output import say, show, show_json
from assay.cli.questions import CONCURRENCY, GivenTarget, ask, model_path
from assay.errors import UsageError


@click.command(
    cls=TeachingCommand,
    needs="Nothing but a model file, or the launch command or URL of the server in use today.",
    examples=[
        "assay init --model qwen.gguf --concurrency 16",
        "assay init --command 'llama-server -m qwen.gguf -c 8192 -np 4'",
        "assay init --engine-version 0.5.9 --command 'sglang serve --model-path GLM-5-NVFP4 --tp 8'",
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
@click.option(
    "--engine-version",
    metavar="VERSION",
    show_default="the installed one, else the newest recorded",
    help="With --command: of an engine on another machine, for the spelling of its flags.",
)
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
    engine_version: str | None,
) -> None:
    """Write a commented assay.toml: the question, declared before anything is measured.

    Give one of --model, --command and --url; with none of them, at a terminal, it asks. Then read the file: target,
    workload, objective, budget and error rates stand once the campaign has been planned.
    """
    given = GivenTarget(
        model=model,
        launch=launch,
        url=url,
        executable=executable,
        concurrency=concurrency,
        api_key_env=api_key_env,
        engine_version=engine_version,
    )
    path = write_spec(folder, name or folder.name, given)
    if as_json:
        show_json({"spec": str(path)})
    else:
        there = " --on BOX" if engine_version else ""
        show(f"wrote {path}", f"read it, then: assay plan{there}")


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
            return api.init_from_command(folder, given.launch, name=name, engine_version=given.engine_version)
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
