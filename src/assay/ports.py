"""The seams: what the campaign needs of an engine, a load generator, a probe and a record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from assay.records.base import Flags
from assay.records.event import Event, EventKind
from assay.records.hypothesis import Hypothesis, Requantize
from assay.records.load import LoadRequest, LoadResult, RequestSample
from assay.records.machine import EngineBuild, Finding, Machine, ModelFacts
from assay.records.run import Failure, ServerIdentity
from assay.records.spec import Target


class LaunchFailed(Exception):  # noqa: N818 - it carries a Failure
    """A server that did not become ready; a recorded outcome, not a malfunction of Assay."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(f"{failure.stage}: {failure.cause}: {failure.line}")
        self.failure = failure


class Server(Protocol):
    """A live server process that we started."""

    identity: ServerIdentity
    base_url: str
    """http://127.0.0.1:PORT."""
    model_name: str
    """What requests put into `model`."""
    extra_body: Mapping[str, bool | int | float | str]
    """Fields that every measured request carries for this engine."""

    def wait_ready(self, timeout_s: float) -> float:
        """Block until it serves; return seconds since launch.

        Raises:
            LaunchFailed: the process died, a fatal line appeared, or time ran out.
        """

    def failure(self) -> Failure | None:
        """None while the process lives; else why it died, from its exit code and log."""

    def effective(self) -> dict[str, Any]:
        """Configuration it reports of itself (flattened keys: `default_generation_settings.n_ctx`)."""

    def fallbacks(self) -> list[str]:
        """Log lines in which the engine says that it does something else than asked."""

    def counters(self) -> dict[str, float]:
        """Its metrics endpoint, flattened; empty when it has none."""

    def next_tokens(self, prompts: Sequence[list[int]]) -> list[int]:
        """The greedy next token after each prompt, prompts taken one at a time."""

    def tokenize(self, text: str) -> list[int]:
        """Token ids of a text, no special tokens added."""

    def rss_bytes(self) -> int | None:
        """Resident memory of its process tree."""

    def stop(self) -> None:
        """SIGINT, SIGTERM, SIGKILL to its session; returns when every process of it is gone. Idempotent."""


@runtime_checkable
class ForeignServer(Server, Protocol):
    """A server that somebody else runs: it has no process of ours, wants a key perhaps, and can be gone."""

    api_key_env: str | None
    """Name of the environment variable that holds its key."""

    def absence(self) -> str | None:
        """Why it cannot be measured right now; None while it is there."""


@runtime_checkable
class CachesOnRequest(Protocol):
    """A server whose prefix cache each request switches on or off: fresh prompts switch it off."""

    body_with_cache: Mapping[str, bool | int | float | str]
    """In place of `extra_body` where prompts share a prefix on purpose."""


class Engine(Protocol):
    """An engine adapter."""

    name: str
    owned: frozenset[str]
    """Flags that Assay sets itself or keeps out of a launch command."""

    def find(self, target: Target) -> EngineBuild:
        """Locate the engine's program and read its version and flags.

        Raises:
            EngineError: there is none, or it does not run here.
        """

    def model(self, target: Target) -> ModelFacts:
        """Find the model and read its facts.

        Raises:
            UsageError: no such file, or not a model this engine serves.
        """

    def argv(self, build: EngineBuild, model_path: str, flags: Flags, port: int) -> list[str]:
        """The launch command: loopback host and the given port included."""

    def check_flags(self, build: EngineBuild, flags: Flags) -> str | None:
        """Why this build cannot take these flags (unknown, removed, value not a choice); None when it can."""

    def canonical(self, build: EngineBuild, flags: Flags) -> Flags:
        """The same flags under the build's long spellings; what the build does not know stays as it is."""

    def make_artifact(self, model: ModelFacts, artifact: Requantize, folder: Path) -> str:
        """Make (or find, by content hash) a model artifact; return its path.

        Raises:
            LaunchFailed: it cannot be made; stage "artifact".
        """

    def launch(self, argv: list[str], env: dict[str, str], log: Path, log_name: str) -> Server:
        """Start a server in its own session, its output going to `log`; does not wait."""

    def in_force(self, flags: Flags, effective: dict[str, Any], fallbacks: list[str]) -> str | None:
        """Why these flags are not in force, by the server's own word; None when nothing contradicts them."""


class LoadGenerator(Protocol):
    """Makes load and times it."""

    def run(
        self,
        request: LoadRequest,
        tokenize: Callable[[str], list[int]],
        alive: Callable[[], bool],
        under_load: Callable[[], None] | None = None,
    ) -> LoadResult:
        """Warm up until steady, measure the windows, drain.

        Args:
            request: what to send, where.
            tokenize: the server's own tokenizer, used before the load starts.
            alive: polled; False ends the load at once (the server died).
            under_load: called once in a thread while the load runs, after the measured windows and before the drain.
        """


class Probe(Protocol):
    """The machine."""

    def machine(self) -> Machine:
        """What it is."""

    def findings(self) -> list[Finding]:
        """What will spoil a measurement here."""

    def snapshot(self, server_pid: int | None = None) -> dict[str, float | None]:
        """How it is right now: load, steal share, foreign CPU share since the last snapshot, free memory, frequency.

        Keys: `foreign_cpu_cores`, `steal_share`, `load_1m`, `available_memory_bytes`, `cpu_frequency_hz`,
        `free_disk_bytes`.
        """


@runtime_checkable
class ReadsGpuMemory(Protocol):
    """A probe that can say how much memory is in use on this machine's GPUs."""

    def gpu_memory_bytes(self) -> int | None:
        """Of all GPUs together; None without a GPU, or where the driver does not say."""


class Record(Protocol):
    """The journal of one campaign."""

    def append(self, kind: EventKind, payload: dict[str, Any]) -> Event:
        """Write one event durably; returns after it is on disk.

        Raises:
            RecordError: it could not be written; nothing half-written remains.
        """

    def events(self) -> list[Event]:
        """All events in order."""


class RunFiles(Protocol):
    """The files of runs in the campaign folder."""

    def folder(self, run_id: str) -> Path:
        """`runs/<run id>`, made when absent."""

    def write_samples(self, run_id: str, samples: Sequence[RequestSample]) -> None:
        """samples.parquet, atomically."""

    def read_samples(self, run_id: str) -> list[RequestSample]:
        """What `write_samples` wrote; an empty list when there is none."""

    def masked(self, run_id: str, content: dict[str, Any]) -> dict[str, Any]:
        """Content without the secrets that this run was started with."""

    def hashes(self, run_id: str) -> dict[str, str]:
        """SHA-256 of each file of a run; its logs are masked first."""

    def write_json(self, run_id: str, name: str, content: dict[str, Any]) -> None:
        """A JSON file, atomically, secrets redacted."""


class Documents(Protocol):
    """The improvement documents."""

    def write(self, hypotheses: Sequence[Hypothesis]) -> None:
        """Write documents that do not exist yet."""

    def read(self) -> list[Hypothesis]:
        """Read every document back.

        Raises:
            UsageError: a document cannot be parsed; names file and line.
        """

    def note_verdict(self, hypothesis: Hypothesis, text: str) -> None:
        """Put the verdict section into the hypothesis's document, leaving a person's prose as it is."""


class Progress(Protocol):
    """Where the campaign says what it is doing."""

    def step(self, text: str, *, done_s: float, total_s: float) -> None:
        """A run begins: what and why, with measuring seconds spent and the expected total."""

    def phase(self, text: str) -> None:
        """Within a run: launching, warming up, measuring ..."""

    def result(self, text: str, *, good: bool | None = None) -> None:
        """Something was concluded."""
