"""Verification: a sound record passes, and every way to spoil one is found and named."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from assay.errors import RecordError
from assay.plan.fold import fold
from assay.records.event import EventKind, event_hash
from assay.records.machine import EngineBuild, Machine, ModelFacts
from assay.records.run import Arm, Failure, Measures, Purpose, Quantiles, RunIntent, RunOutcome, RunStatus, Window
from assay.records.spec import CampaignSpec, Target
from assay.records.verdict import Effect, Headline, Verdict, VerdictKind
from assay.store.files import CampaignFolder
from assay.store.projections import rebuild
from assay.store.reader import read_raw
from assay.store.record import SqliteRecord
from assay.store.spec_file import spec_hash
from assay.store.verify import verify
from tests.unit.test_store_files import failed, sample

LATENCY = Quantiles(num_samples=2, mean_s=0.1, p50_s=0.125, p90_s=None, p95_s=None, p99_s=None)
EFFECT = Effect(
    log_ratio=0.1, low=0.05, high=0.15, num_brackets=4, standard_error=0.02, degrees_of_freedom=3.0, confidence=0.9
)


def example(cls, **values):
    """A record with the given values; fields that this test does not care about are filled by kind."""
    fillers = {"int": 1, "float": 1.0, "str": "x", "bool": True, "float | None": 1.0, "int | None": 1}
    for name, field in cls.model_fields.items():
        if field.is_required() and name not in values:
            kind = getattr(field.annotation, "__name__", None) or str(field.annotation)
            values[name] = fillers.get(kind, [] if "list" in kind else None)
    return cls.model_validate(values)


def measures() -> Measures:
    windows = [
        Window(start_s=float(n), duration_s=1.0, output_tokens=10 + n, output_tokens_per_s=10.0 + n) for n in (1, 2)
    ]
    return example(
        Measures,
        windows=windows,
        output_tokens_per_s=11.5,
        requests_completed=2,
        **dict.fromkeys(["ttft", "tpot", "itl", "e2e"], LATENCY),
    )


def intend(record: SqliteRecord, run_id: str) -> None:
    intent = RunIntent(
        run_id=run_id,
        purpose=Purpose.SCREEN,
        series="screen",
        candidate="threads",
        arm=Arm(label="threads", flags={"--threads": 2}),
        seed=1,
        why="because",
    )
    record.append(EventKind.RUN_INTENDED, {"intent": intent.model_dump(mode="json")})


def end(record: SqliteRecord, files: CampaignFolder, run_id: str, status: RunStatus = RunStatus.OK) -> None:
    failure = Failure(stage="load", cause="oom", line="no memory", log="runs/x/server.log")
    outcome = RunOutcome(
        run_id=run_id,
        status=status,
        reason="measured",
        duration_s=9.0,
        start_s=0.5,
        measures=measures() if status is RunStatus.OK else None,
        failure=failure if status is RunStatus.FAILED else None,
    )
    payload = {"outcome": outcome.model_dump(mode="json"), "files": files.hashes(run_id)}
    record.append(EventKind.RUN_ENDED, payload)


def create(record: SqliteRecord) -> None:
    spec = CampaignSpec(target=Target(env={"HF_TOKEN": "hunter2"}))
    created = {
        "spec": spec.model_dump(mode="json"),
        "spec_hash": spec_hash(spec),
        "machine": example(Machine).model_dump(mode="json"),
        "build": example(EngineBuild).model_dump(mode="json"),
        "model": example(ModelFacts).model_dump(mode="json"),
        "assay_version": "0.1.0",
    }
    record.append(EventKind.CAMPAIGN_CREATED, created)


def write_campaign(folder: Path) -> SqliteRecord:
    """Creation (1), plan (2), an ok run (3-4), a failed one (5-6), a verdict (7), an open run (8), the end (9)."""
    files = CampaignFolder(folder)
    record = SqliteRecord(folder / "assay.db", create=True)
    create(record)
    record.append(EventKind.PLAN_WRITTEN, {"hypotheses": [], "passed_over": {}})
    intend(record, "r0001")
    files.write_samples("r0001", [sample(0), sample(1), failed(2)])
    (files.folder("r0001") / "server.log").write_text("ready\n")
    end(record, files, "r0001")
    intend(record, "r0002")
    (files.folder("r0002") / "server.log").write_text("no memory\n")
    end(record, files, "r0002", RunStatus.FAILED)
    verdict = Verdict(
        candidate="threads",
        kind=VerdictKind.ADOPTED,
        reason="+10%",
        effect=EFFECT,
        runs=["r0001"],
        prediction_held=True,
    )
    record.append(EventKind.VERDICT_REACHED, {"verdict": verdict.model_dump(mode="json")})
    intend(record, "r0003")
    headline = example(Headline, flags={}, effect=EFFECT, runs=["r0001"])
    record.append(EventKind.CAMPAIGN_FINISHED, {"headline": headline.model_dump(mode="json")})
    return record


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sound")
    write_campaign(folder)
    return folder


@pytest.fixture
def folder(sound, tmp_path) -> Path:
    return shutil.copytree(sound, tmp_path / "campaign")


def tamper(folder: Path, *statements: str) -> None:
    """What somebody with a SQLite shell can do."""
    with closing(sqlite3.connect(folder / "assay.db")) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")]
        for statement in [*(f"DROP TRIGGER {name}" for name in names), *statements]:
            connection.execute(statement)
        connection.commit()


def rehash(folder: Path, seq: int) -> None:
    """A careful forger: gives the changed event the hash of its new content."""
    row = read_raw(folder / "assay.db")[seq - 1]
    digest = event_hash(row.seq, row.at_ns, row.kind, json.loads(row.payload), row.previous_hash)
    tamper(folder, f"UPDATE events SET hash = '{digest}' WHERE seq = {seq}")  # noqa: S608 - a test's own values


def problems(folder: Path) -> list[str]:
    found = verify(folder)
    assert found.ok == (not found.problems)
    return found.problems


def test_a_sound_record_passes_and_is_not_touched(folder):
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    found = verify(folder)
    assert found.problems == []
    assert (found.ok, found.num_events, found.num_runs) == (True, 9, 3)
    assert found.last_hash == SqliteRecord(folder / "assay.db").events()[-1].hash
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_a_record_without_events_is_not_ok(tmp_path):
    SqliteRecord(tmp_path / "assay.db", create=True)
    assert verify(tmp_path).ok is False
    assert "expected events, found none" in verify(tmp_path).problems[0]


def test_no_record_is_an_error(tmp_path):
    with pytest.raises(RecordError, match="no record"):
        verify(tmp_path)


@pytest.mark.parametrize("seq", range(1, 10))
def test_one_changed_byte_of_any_payload_is_found_and_its_event_named(folder, seq):
    path = folder / "assay.db"
    payload = read_raw(path)[seq - 1].payload.encode()
    content = path.read_bytes()
    assert content.count(payload) == 1
    position = content.index(payload) + len(payload) // 2
    path.write_bytes(content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :])
    found = problems(folder)
    assert found
    assert all(problem.startswith(f"event {seq} ") for problem in found if "expected hash" in problem)
    assert any(problem.startswith(f"event {seq} ") and "expected hash" in problem for problem in found)


def test_bytes_that_are_no_text_are_found_and_named(folder):
    tamper(folder, "UPDATE events SET payload = CAST(x'ff00ff' AS TEXT) WHERE seq = 4")
    assert any(problem.startswith("event 4 (run-ended): expected hash") for problem in problems(folder))
    assert any(problem.startswith("event 4 (run-ended): expected JSON") for problem in problems(folder))


def test_the_last_byte_of_the_file_cut_off_does_not_pass(folder):
    path = folder / "assay.db"
    path.write_bytes(path.read_bytes()[:-1])
    assert problems(folder)


def test_another_spelling_of_the_same_values_is_found(folder):
    tamper(folder, """UPDATE events SET payload = replace(payload, ':', ': ') WHERE seq = 2""")
    assert problems(folder) == [
        "event 2 (plan-written): expected canonical JSON, found the same values in another spelling"
    ]


@pytest.mark.parametrize("column", ["at_ns = at_ns + 1", "kind = 'calibrated'", "hash = previous_hash"])
def test_a_change_beside_the_payload_is_found(folder, column):
    tamper(folder, f"UPDATE events SET {column} WHERE seq = 7")  # noqa: S608 - a test's own values
    assert any(problem.startswith("event 7 ") and "expected hash" in problem for problem in problems(folder))


def test_a_changed_event_with_its_hash_made_to_fit_breaks_the_link_after_it(folder):
    tamper(folder, "UPDATE events SET payload = replace(payload, '9.0', '1.0') WHERE seq = 4")
    rehash(folder, 4)
    (problem,) = problems(folder)
    assert problem.startswith("event 5 (run-intended): expected previous hash")


def test_a_deleted_event_is_named(folder):
    tamper(folder, "DELETE FROM events WHERE seq = 7")
    assert problems(folder) == ["event 8: expected event 7 here; event 7 is missing"]


def test_a_deleted_event_with_the_later_ones_moved_up_is_found(folder):
    tamper(folder, "DELETE FROM events WHERE seq = 7", "UPDATE events SET seq = seq - 1 WHERE seq > 7")
    assert any("previous hash" in problem for problem in problems(folder))


def test_several_missing_events_are_named_as_a_range(folder):
    tamper(folder, "DELETE FROM events WHERE seq IN (6, 7)")
    assert problems(folder)[0] == "event 8: expected event 6 here; events 6 to 7 are missing"


def test_an_end_cut_off_is_found_by_the_folders_it_leaves(folder):
    tamper(folder, "DELETE FROM events WHERE seq > 4")
    (problem,) = problems(folder)
    assert "r0002: expected an event run-intended for this folder" in problem


def test_a_record_that_does_not_begin_with_its_creation_is_found(tmp_path):
    record = SqliteRecord(tmp_path / "assay.db", create=True)
    record.append(EventKind.PLAN_WRITTEN, {"hypotheses": [], "passed_over": {}})
    create(record)
    first, second = problems(tmp_path)
    assert first.startswith("event 1 (plan-written): expected campaign-created as the first event")
    assert second.startswith("event 2 (campaign-created): expected one creation only")


def test_a_spec_that_is_not_the_hashed_one_is_found(tmp_path):
    record = SqliteRecord(tmp_path / "assay.db", create=True)
    payload = SqliteRecord(write_campaign(tmp_path / "other").path).events()[0].payload
    payload["spec"]["objective"]["min_effect"] = 0.001
    record.append(EventKind.CAMPAIGN_CREATED, payload)
    (problem,) = problems(tmp_path)
    assert problem.startswith("event 1 (campaign-created): expected spec_hash")


@pytest.mark.parametrize(
    ("kind", "payload", "said"),
    [
        (EventKind.CALIBRATED, {}, "expected the keys ['calibration'], found []"),
        (
            EventKind.PLAN_WRITTEN,
            {"hypotheses": [], "passed_over": {}, "more": 1},
            "found ['hypotheses', 'more', 'passed_over']",
        ),
        (EventKind.RUN_INTENDED, {"intent": {"run_id": 7}}, "intent.run_id: Input should be a valid string, found '7'"),
        (EventKind.SERVER_STARTED, {"run_id": "r9999", "server": None}, "expected an intent of run r9999 before it"),
    ],
)
def test_a_payload_that_is_no_record_is_named(folder, kind, payload, said):
    SqliteRecord(folder / "assay.db").append(kind, payload)
    found = problems(folder)
    assert all(problem.startswith(f"event 10 ({kind}): ") for problem in found)
    assert any(said in problem for problem in found)


def test_an_unknown_kind_is_named(folder):
    tamper(folder, "UPDATE events SET kind = 'stale' WHERE seq = 9")
    assert "event 9 (stale): expected a known kind of event, found 'stale'" in problems(folder)


def test_runs_without_intent_or_with_two_ends_are_named(folder):
    record, files = SqliteRecord(folder / "assay.db"), CampaignFolder(folder)
    end(record, files, "r0007", RunStatus.ABANDONED)
    end(record, files, "r0002", RunStatus.FAILED)
    intend(record, "r0001")
    assert problems(folder) == [
        "event 10 (run-ended): expected an intent of run r0007 before it, found none",
        "event 11 (run-ended): expected one end of run r0002, found another",
        "event 12 (run-intended): expected a new run, found run r0001 a second time",
    ]


def test_a_verdict_on_runs_that_never_were_is_named(folder):
    verdict = Verdict(candidate="x", kind=VerdictKind.WORSE, reason="slower", runs=["r0001", "r0042"])
    SqliteRecord(folder / "assay.db").append(EventKind.VERDICT_REACHED, {"verdict": verdict.model_dump(mode="json")})
    assert problems(folder) == ["event 10 (verdict-reached): expected an intent of run r0042 before it, found none"]


def test_a_changed_or_missing_file_of_a_run_is_named(folder):
    (folder / "runs/r0001/server.log").write_text("Ready\n")
    (folder / "runs/r0002/server.log").unlink()
    one, two = problems(folder)
    assert one.startswith(f"event 4 (run-ended): {folder}/runs/r0001/server.log: expected SHA-256 ")
    assert two.startswith(f"event 6 (run-ended): {folder}/runs/r0002/server.log: expected a file")


def test_changed_samples_are_named_by_file(folder):
    CampaignFolder(folder).write_samples("r0001", [sample(0), sample(1), sample(2)])
    (problem,) = problems(folder)
    assert "samples.parquet: expected SHA-256" in problem


def test_an_ok_run_needs_its_samples_and_as_many_as_it_says(folder):
    record, files = SqliteRecord(folder / "assay.db"), CampaignFolder(folder)
    intend(record, "r0004")
    end(record, files, "r0004")
    intend(record, "r0005")
    files.write_samples("r0005", [sample(0), failed(1)])
    end(record, files, "r0005")
    none, few = problems(folder)
    assert none == "event 11 (run-ended): expected the hash of samples.parquet for the ok run r0004, found []"
    assert few.endswith("samples.parquet: expected at least 2 completed requests, found 1")


def test_samples_that_are_no_table_are_named(folder):
    record, files = SqliteRecord(folder / "assay.db"), CampaignFolder(folder)
    intend(record, "r0004")
    (files.folder("r0004") / "samples.parquet").write_bytes(b"PAR1 no")
    end(record, files, "r0004")
    (problem,) = problems(folder)
    assert "expected a readable table of samples" in problem


def test_a_recorded_file_outside_its_run_is_refused(folder):
    outcome = RunOutcome(run_id="r0003", status=RunStatus.ABANDONED, reason="x", duration_s=0.0).model_dump(mode="json")
    payload = {"outcome": outcome, "files": {"../../assay.db": "0" * 64}}
    SqliteRecord(folder / "assay.db").append(EventKind.RUN_ENDED, payload)
    (problem,) = problems(folder)
    assert "outside its folder" in problem


def test_the_projections_do_not_change_the_verdict_on_the_record(folder):
    record = SqliteRecord(folder / "assay.db")
    rebuild(record, fold(record.events()))
    assert problems(folder) == []
