"""What every engine adapter must do, whoever wrote it: call these from the adapter's own tests.

Each function drives a real engine through `assay.ports.Engine` and fails with an `AssertionError` that names what was
expected. None of them knows an engine's flags: those come in as arguments.
"""

from __future__ import annotations

import json
from pathlib import Path

from assay.ports import Engine, LaunchFailed, Server
from assay.process import free_port, listens
from assay.process.children import is_ours
from assay.records.base import Flags
from assay.records.hypothesis import Requantize
from assay.records.machine import EngineBuild, ModelFacts
from assay.records.run import Failure
from assay.records.spec import Target

READY_TIMEOUT_S = 300.0
TEXT = "The river bends twice before it reaches the town."
NO_SUCH_FLAG = "--assay-conformance-no-such-flag"


def check_build(engine: Engine, target: Target) -> EngineBuild:
    """The program is found, says its version and its flags, and says the same when asked again."""
    build = engine.find(target)
    assert build.engine == engine.name, f"build.engine = {build.engine!r}, the adapter is {engine.name!r}"
    assert build.argv, "a build needs the words that start it"
    assert build.version, "a build needs a version"
    assert build.flags, "a build needs the flags of its own help"
    assert all(info.names for info in build.flags), "every flag needs a spelling"
    assert engine.find(target) == build, "a second find differs from the first"
    return build


def check_model(engine: Engine, target: Target) -> ModelFacts:
    """The model is found, and known by its content."""
    model = engine.model(target)
    path = Path(model.path)
    files = [path] if path.is_file() else [file for file in path.rglob("[!.]*") if file.is_file()]
    assert files, f"no file at {path} and none in it"
    assert model.size_bytes == sum(file.stat().st_size for file in files)
    assert len(model.sha256) == 64, "sha256 wants 64 hex digits"  # noqa: PLR2004 - of SHA-256
    return model


def check_command(engine: Engine, build: EngineBuild, model: ModelFacts, flags: Flags) -> list[str]:
    """The command begins with the build's program, names the model, and listens on loopback and the given port."""
    port = free_port()
    argv = engine.argv(build, model.path, flags, port)
    assert argv[: len(build.argv)] == build.argv
    for word in (model.path, "127.0.0.1", str(port)):
        assert word in argv, f"{word} is missing in {argv}"
    assert "0.0.0.0" not in argv, "a server under test listens on loopback only"  # noqa: S104 - refused here
    return argv


def check_unknown_flag(engine: Engine, build: EngineBuild) -> None:
    """A flag that the build does not have is refused with a sentence that names it."""
    assert engine.check_flags(build, {}) is None
    reason = engine.check_flags(build, {NO_SUCH_FLAG: True})
    assert reason is not None, f"{NO_SUCH_FLAG} was accepted"
    assert NO_SUCH_FLAG in reason


def check_life(engine: Engine, build: EngineBuild, model: ModelFacts, flags: Flags, folder: Path) -> None:
    """A server becomes ready, answers as the port promises, and is gone after `stop`."""
    server = _launched(engine, check_command(engine, build, model, flags), folder / "life.log")
    try:
        assert server.wait_ready(READY_TIMEOUT_S) > 0
        assert is_ours(server.identity.pid, server.identity.create_time), "the identity is not that of a live process"
        assert listens(server.identity.pid, server.identity.port), "somebody else listens on its port"
        check_answers(server)
        json.dumps(server.effective(), allow_nan=False)
        assert engine.in_force(flags, server.effective(), server.fallbacks()) is None
        assert engine.in_force({}, server.effective(), server.fallbacks()) is None
    finally:
        server.stop()
    assert not is_ours(server.identity.pid, server.identity.create_time), "it lives after stop"
    server.stop()


def check_answers(server: Server) -> None:
    """A live server tokenizes, answers the same twice, counts, and has a size."""
    ids = server.tokenize(TEXT)
    assert ids, "a text has tokens"
    prompts = [ids, ids[: len(ids) // 2]]
    first = server.next_tokens(prompts)
    assert len(first) == len(prompts), "one token after each prompt"
    assert server.next_tokens(prompts) == first, "greedy tokens differ when asked again"
    assert all(isinstance(value, float) for value in server.counters().values())
    assert (server.rss_bytes() or 0) > 0, "a live server has resident memory"
    assert server.failure() is None, "a live server has not failed"


def check_failed_launch(engine: Engine, build: EngineBuild, model: ModelFacts, flags: Flags, folder: Path) -> Failure:
    """A launch that cannot succeed says so well before its time is up, and leaves nothing behind."""
    log = folder / "failed.log"
    server = _launched(engine, engine.argv(build, model.path, flags, free_port()), log)
    try:
        server.wait_ready(READY_TIMEOUT_S)
    except LaunchFailed as failed:
        failure = failed.failure
    else:
        raise AssertionError(f"{flags} became ready")
    finally:
        server.stop()
    assert failure.cause != "timeout", "the server's end was not noticed"
    assert failure.line, "a failure quotes a line"
    assert failure.log == log.name, f"the failure names the log {failure.log!r}"
    assert not is_ours(server.identity.pid, server.identity.create_time), "it lives after it failed"
    return failure


def check_artifact(engine: Engine, model: ModelFacts, artifact: Requantize, folder: Path) -> str:
    """An artifact is made once, is a model, and nothing half-made lies beside it."""
    path = engine.make_artifact(model, artifact, folder)
    made = Path(path).stat()
    assert engine.make_artifact(model, artifact, folder) == path, "the same artifact has another path"
    assert Path(path).stat().st_mtime_ns == made.st_mtime_ns, "it was made twice"
    assert engine.model(Target(model=path)).size_bytes == made.st_size
    assert [child.name for child in folder.iterdir()] == [Path(path).name], "something else lies in the folder"
    return path


def _launched(engine: Engine, argv: list[str], log: Path) -> Server:
    return engine.launch(argv, {}, log, log.name)
