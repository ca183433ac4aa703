"""The campaign folder: files of runs are whole or absent, and read back as written."""

import errno
import hashlib
import json
import os
import stat
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from assay.errors import RecordError
from assay.records.load import RequestSample
from assay.store.atomic import TEMPORARY_PREFIX, atomic_write
from assay.store.disk import disk_error
from assay.store.files import CampaignFolder


def sample(index: int = 0, **changes) -> RequestSample:
    values = {
        "index": index,
        "stream": 1,
        "intended_ns": 10**18,
        "sent_ns": 10**18 + 5,
        "first_content_ns": 10**18 + 9,
        "chunk_ns": [10**18 + 9, 10**18 + 12],
        "ended_ns": 10**18 + 20,
        "input_tokens": 30,
        "output_tokens": 2,
        "cached_tokens": 0,
        "wanted_output_tokens": 2,
        "status": 200,
        "finish_reason": "length",
        "first_text": " naïve",
        "error": None,
        "phase": "measured",
    }
    return RequestSample(**{**values, **changes})


def failed(index: int) -> RequestSample:
    unknown = dict.fromkeys(
        ["first_content_ns", "input_tokens", "output_tokens", "cached_tokens", "status", "finish_reason", "first_text"]
    )
    return sample(index, **unknown, chunk_ns=[], error="reset: connection reset by peer")


def test_samples_read_back_as_they_were_in_order(tmp_path):
    files = CampaignFolder(tmp_path)
    samples = [sample(3), failed(1), sample(2, phase="drain")]
    files.write_samples("r0001", samples)
    assert files.read_samples("r0001") == samples
    assert [path.name for path in (tmp_path / "runs" / "r0001").iterdir()] == ["samples.parquet"]


def test_no_samples_are_a_table_without_rows(tmp_path):
    files = CampaignFolder(tmp_path)
    files.write_samples("r0001", [])
    assert files.read_samples("r0001") == []


def test_the_parquet_file_has_typed_columns_for_other_tools(tmp_path):
    files = CampaignFolder(tmp_path)
    files.write_samples("r0001", [sample()])
    schema = pq.read_schema(files.folder("r0001") / "samples.parquet")
    assert str(schema.field("chunk_ns").type).startswith("list<element: int64 not null")
    assert (str(schema.field("sent_ns").type), schema.field("sent_ns").nullable) == ("int64", False)
    assert pq.read_metadata(files.folder("r0001") / "samples.parquet").row_group(0).column(0).compression == "ZSTD"


def test_a_text_cut_inside_a_character_is_stored_with_a_replacement(tmp_path):
    files = CampaignFolder(tmp_path)
    files.write_samples("r0001", [sample(first_text="a\ud83d")])
    assert files.read_samples("r0001")[0].first_text == "a?"


def test_a_sample_that_does_not_fit_is_refused_and_the_file_before_it_stays(tmp_path):
    files = CampaignFolder(tmp_path)
    files.write_samples("r0001", [sample()])
    for wrong in (sample(sent_ns=2**70), sample(phase=None), sample(status="ok")):
        with pytest.raises(RecordError, match="do not fit"):
            files.write_samples("r0001", [wrong])
    assert files.read_samples("r0001") == [sample()]


def test_damaged_foreign_or_missing_samples_are_record_errors(tmp_path):
    files = CampaignFolder(tmp_path)
    with pytest.raises(RecordError, match="No such file"):
        files.read_samples("r0001")
    path = files.folder("r0001") / "samples.parquet"
    files.write_samples("r0001", [sample()])
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(RecordError, match="damaged"):
        files.read_samples("r0001")
    path.unlink()
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(RecordError, match="columns"):
        files.read_samples("r0001")


def test_json_files_are_written_with_secrets_masked(tmp_path):
    files = CampaignFolder(tmp_path)
    files.write_json("r0001", "command.json", {"argv": ["s", "--api-key", "hunter2"], "env": {"HF_TOKEN": "hunter2"}})
    content = (tmp_path / "runs/r0001/command.json").read_text()
    assert json.loads(content) == {"argv": ["s", "--api-key", "[redacted]"], "env": {"HF_TOKEN": "[redacted]"}}


@pytest.mark.parametrize("content", [{"x": float("nan")}, {"x": object()}])
def test_what_is_not_json_is_refused(tmp_path, content):
    with pytest.raises(RecordError, match="not JSON"):
        CampaignFolder(tmp_path).write_json("r0001", "a.json", content)


def test_hashes_cover_every_finished_file_of_the_run(tmp_path):
    files = CampaignFolder(tmp_path)
    folder = files.folder("r0001")
    (folder / "server.log").write_bytes(b"log")
    (folder / "machine").mkdir()
    (folder / "machine" / "before.json").write_bytes(b"{}")
    (folder / f"{TEMPORARY_PREFIX}abc").write_bytes(b"half")
    expected = {"server.log": b"log", "machine/before.json": b"{}"}
    assert files.hashes("r0001") == {name: hashlib.sha256(data).hexdigest() for name, data in expected.items()}
    assert files.hashes("r0002") == {}


@pytest.mark.parametrize("run_id", ["", "..", "../x", "a/b", "/etc", ".hidden", "a\nb"])
def test_a_run_id_cannot_leave_the_folder(tmp_path, run_id):
    with pytest.raises(RecordError, match="cannot name"):
        CampaignFolder(tmp_path).folder(run_id)
    assert list(tmp_path.iterdir()) == []


def test_the_paths_are_those_of_the_design(tmp_path):
    files = CampaignFolder(tmp_path)
    found = [path.name for path in (files.spec, files.database, files.improvements, files.runs, files.report)]
    assert found == ["assay.toml", "assay.db", "improvements", "runs", "report"]


def test_an_atomic_write_replaces_the_whole_file_and_others_may_read_it(tmp_path):
    path = tmp_path / "a.txt"
    atomic_write(path, b"a long first content")
    atomic_write(path, b"second")
    mask = os.umask(0)
    os.umask(mask)
    assert path.read_bytes() == b"second"
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    assert list(tmp_path.iterdir()) == [path]


LIMITED = """
import resource, sys
from pathlib import Path
from assay.errors import RecordError
from assay.store.files import CampaignFolder
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    CampaignFolder(Path(sys.argv[1])).write_json("r0001", "a.json", {"text": "x" * 5000})
except RecordError as error:
    print(error.message, "|", error.hint)
"""


def test_a_full_disk_leaves_the_old_file_and_nothing_half_written(tmp_path):
    files = CampaignFolder(tmp_path)
    files.write_json("r0001", "a.json", {"old": True})
    output = subprocess.run(
        [sys.executable, "-c", LIMITED, tmp_path], capture_output=True, text=True, check=True
    ).stdout
    assert "disk is full" in output
    assert "free some disk space" in output
    assert [path.name for path in files.folder("r0001").iterdir()] == ["a.json"]
    assert json.loads((files.folder("r0001") / "a.json").read_text()) == {"old": True}


def test_a_folder_that_cannot_be_made_is_a_record_error(tmp_path):
    (tmp_path / "runs").touch()
    with pytest.raises(RecordError, match="runs") as refusal:
        CampaignFolder(tmp_path).folder("r0001")
    assert refusal.value.exit_code == 6
    assert refusal.value.hint


def test_a_file_that_may_not_be_read_is_not_told_to_be_made_writable(tmp_path):
    error = disk_error(PermissionError(errno.EACCES, os.strerror(errno.EACCES)), tmp_path / "a", "read")
    assert "readable" in error.hint
    assert "writable" not in error.hint


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        (errno.ENOSPC, "free some disk"),
        (errno.EDQUOT, "free some disk"),
        (errno.EROFS, "writable"),
        (errno.EIO, "look at"),
    ],
)
def test_an_error_of_the_disk_names_the_next_step(tmp_path, code, hint):
    error = disk_error(OSError(code, os.strerror(code)), tmp_path / "a", "write")
    assert os.strerror(code) in error.message
    assert str(tmp_path / "a") in error.message
    assert error.hint.startswith(hint) or hint in error.hint
