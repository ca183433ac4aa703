"""`assay explain`: what it reads, what it says to people and programs, and how it ends."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from assay.api.explain import LONGEST_BYTES
from assay.api.explain import explain as explain_logs
from assay.cli.explain import explain
from assay.errors import UsageError
from tests.cli.records import modules_loaded_by

LOGS = Path(__file__).parent.parent / "unit" / "failure_logs"


def run(*words: str | Path, text: str | bytes | None = None) -> Result:
    runner = CliRunner(env={"COLUMNS": "100", "NO_COLOR": "1"})
    return runner.invoke(explain, [str(word) for word in words], input=text, prog_name="assay explain")


def test_people_read_stage_cause_the_quoted_line_in_its_place_the_remedy_and_what_it_implies() -> None:
    done = run(LOGS / "vllm_kv_too_small.log")

    assert done.exit_code == 0
    first = done.stdout.splitlines()[0]
    assert first.startswith("kv-cache-too-small while allocating the KV cache: the KV cache does not hold one request")
    assert "vllm_kv_too_small.log:5" in done.stdout.replace("\n", "")
    assert ">      5  (EngineCore_DP0 pid=9) ERROR" in done.stdout
    assert "       4  (EngineCore_DP0 pid=9) ERROR" in done.stdout
    assert "lower max_model_len" in done.stdout
    assert "implies\n" in done.stdout


def test_a_long_line_goes_on_under_its_own_text_off_a_terminal_too(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(
        f"RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB {'more words ' * 12}\n", encoding="utf-8"
    )
    lines = run(log).stdout.splitlines()

    first = next(number for number, line in enumerate(lines) if line.startswith(">      1  RuntimeError"))
    assert lines[first + 1].startswith(" " * 10 + "words more")


def test_programs_read_one_document_with_the_same_facts() -> None:
    done = run(LOGS / "triton_shared_memory.log", "--json")

    told = json.loads(done.stdout)
    assert done.exit_code == 0
    assert {"stage", "cause", "quote", "line", "remedy", "implies"} <= told.keys()
    assert (told["stage"], told["cause"], told["line"]) == ("warm-up", "unsupported-architecture", 5)
    assert told["implies"][0]["value"] == "101376"


def test_a_log_that_does_not_tell_ends_with_1_and_quotes_what_comes_nearest() -> None:
    done = run(LOGS / "sglang_advice_is_no_cause.log")

    assert done.exit_code == 1
    assert "unknown while loading: the log does not tell" in done.stdout
    assert "exit code: -3" in done.stdout


def test_an_unknown_cause_is_still_one_document_for_programs() -> None:
    done = run("-", "--json", text="hello\n")

    assert done.exit_code == 1
    assert json.loads(done.stdout)["cause"] == "unknown"


def test_standard_input_is_read_with_a_dash() -> None:
    done = run("-", "--json", text="error: invalid argument: --otter\n")

    told = json.loads(done.stdout)
    assert (told["cause"], told["file"], told["line"]) == ("unknown-flag", "stdin", 1)


def test_several_files_are_the_streams_of_one_failure(tmp_path: Path) -> None:
    out, err = tmp_path / "out.log", tmp_path / "err.log"
    out.write_text("INFO: Application startup complete.\n")
    err.write_text("RuntimeError: CUDA error: an illegal memory access was encountered\n")

    told = json.loads(run(out, err, "--json").stdout)

    assert (told["cause"], told["stage"], told["file"]) == ("illegal-memory-access", "under-load", str(err))


def test_the_exit_code_explains_a_log_that_only_ends() -> None:
    done = run("-", "--exit-code", "137", text="Loading safetensors checkpoint shards:  10% Completed\n")

    assert done.exit_code == 0
    assert "killed while" in done.stdout
    assert "SIGKILL" in done.stdout
    assert "inferred" in done.stdout


@pytest.mark.parametrize("name", ["nowhere.log", "."])
def test_a_file_that_cannot_be_read_is_refused_with_what_to_do(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        explain_logs([tmp_path / name])

    assert caught.value.exit_code == 2
    assert caught.value.hint


def test_no_file_is_refused() -> None:
    assert run().exit_code == 2
    with pytest.raises(UsageError):
        explain_logs([])


def test_bytes_that_are_no_text_and_a_line_without_an_end_are_read(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(
        b"\xff\xfe\x00" + b"x" * (3 * LONGEST_BYTES) + b"\nOSError: [Errno 98] Address already in use\n\xc3"
    )

    found = explain_logs([log])

    assert (found.cause, found.line, found.num_lines) == ("port-in-use", 2, 3)


@pytest.mark.parametrize(
    ("encoding", "mark"), [("utf-16", b""), ("utf-16-be", b"\xfe\xff"), ("utf-32", b""), ("utf-8-sig", b"")]
)
def test_a_log_written_in_wide_letters_is_read_by_its_mark(encoding: str, mark: bytes, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(mark + "INFO Ċ starting\r\nOSError: [Errno 98] Address already in use\r\n".encode(encoding))

    found = explain_logs([log])

    assert (found.cause, found.line, found.num_lines) == ("port-in-use", 2, 2)


@pytest.mark.parametrize("exit_code", [139, -9])
def test_without_a_log_an_exit_code_tells_no_stage(exit_code: int, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(b"")

    found = explain_logs([log], exit_code)

    assert (found.stage, found.num_lines) == ("unknown", 0)
    assert found.is_explained


def test_a_line_of_exactly_the_longest_length_is_one_line(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(
        b"x" * (LONGEST_BYTES - 1) + b"\n" + b"x" * LONGEST_BYTES + b"\nOSError: [Errno 28] No space left on device"
    )

    assert explain_logs([log]).line == 3


def test_a_log_that_gzip_packed_is_read_and_one_that_was_cut_up_to_there(tmp_path: Path) -> None:
    packed = gzip.compress((LOGS / "triton_shared_memory.log").read_bytes())
    whole, cut = tmp_path / "a.log.gz", tmp_path / "cut.log.gz"
    whole.write_bytes(packed)
    cut.write_bytes(packed[:-30])

    assert json.loads(run(whole, "--json").stdout)["line"] == 5
    assert json.loads(run("-", "--json", text=packed).stdout)["line"] == 5
    assert "is damaged or was cut" in json.loads(run(cut, "--json").stdout)["notes"][0]


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"\x7fELF" + bytes(range(256)) * 8, "is no text"), (b"\xfd7zXZ\x00 and more", "is compressed")],
)
def test_what_is_no_log_is_said_to_be_none(content: bytes, said: str, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(content)

    done = run(log)

    assert isinstance(done.exception, UsageError)
    assert done.exception.message.endswith(said)


def test_a_log_that_was_cut_while_its_server_wrote_begins_with_zeros_and_is_read(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(bytes(4096) + b"\n" + (LOGS / "triton_shared_memory.log").read_bytes())

    assert json.loads(run(log, "--json").stdout)["line"] == 6


def test_a_device_and_a_pipe_that_nobody_writes_to_are_refused_and_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    for file in (Path("/dev/zero"), pipe):
        done = run(file)
        assert isinstance(done.exception, UsageError)
        assert "is no regular file" in done.exception.message


def test_of_memory_that_ran_out_at_a_stage_that_nothing_tells_no_stage_is_claimed() -> None:
    line = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"

    alone = json.loads(run("-", "--json", text=line).stdout)
    late = json.loads(run("-", "--json", text=f"step 1\nstep 2\n{line}").stdout)
    placed = json.loads(run("-", "--json", text=f"INFO [loader.py:1] Loading weights took 2 seconds\n{line}").stdout)

    assert (alone["stage"], alone["certainty"]) == (late["stage"], late["certainty"]) == ("unknown", "inferred")
    assert "the log does not tell when" in alone["meaning"]
    assert placed["stage"] != "unknown"
    assert placed["certainty"] == "stated"


def test_the_help_of_explain_imports_nothing_heavy() -> None:
    loaded = modules_loaded_by(["-c", "import assay.cli.explain"])

    assert not loaded & {"pydantic", "numpy", "rich", "sqlalchemy"}
