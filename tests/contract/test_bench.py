"""`assay bench` against servers whose truth is known: the null server's schedule, a hostile server's faults."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from threading import Thread

import pyarrow.parquet as pq
import pytest

from assay import api
from assay.errors import EngineError, UsageError
from assay.load.bench import measure_point, prepare
from assay.load.ceiling import physical_ceiling
from assay.load.server import Server
from assay.ports_bench import Live
from assay.process import Piped
from assay.records.bench import Arrival, BenchResult, BenchSpec, Dataset, Lengths, Slo, Synthetic
from tests.contract.hostile_server import Behaviour, serving
from tests.contract.null import Silent, null_server, sent

MAX_ERROR_NS = 1_000_000


def fixed(tokens: int) -> Lengths:
    return Lengths(kind="fixed", mean=tokens)


def spec(url: str, **changes) -> BenchSpec:
    """Short windows; what is measured in them is asked about in longer ones."""
    plain = {
        "url": url,
        "model": "null",
        "workload": Synthetic(input=fixed(16), output=fixed(20)),
        "arrival": Arrival(concurrency=8),
        "window_s": 0.5,
        "windows": 2,
        "warmup_min_s": 0.2,
        "warmup_max_s": 10.0,
    }
    return BenchSpec(**{**plain, **changes})


def failed(result: BenchResult) -> set[str]:
    return {gate.name for gate in result.gates if not gate.passed}


def gaps(stamps: list[int]) -> list[int]:
    return [later - earlier for earlier, later in pairwise(stamps)]


def benched(folder: Path, **changes) -> BenchResult:
    with null_server() as null:
        return api.bench(spec(null.url, **changes), folder, Silent())


def test_stamps_are_the_instants_at_which_the_server_really_sent(tmp_path: Path):
    with null_server(tmp_path / "log", first_token_s=0.02, tokens_per_s=100.0) as null:
        alone = spec(null.url, arrival=Arrival(concurrency=1), window_s=1.0)
        result = api.bench(alone, tmp_path / "out", Silent())
    truth = {stamps[0]: stamps[1:] for stamps in sent(tmp_path / "log").values()}
    arrivals = sorted(truth)
    errors = []
    for row in pq.read_table(tmp_path / "out" / "requests.parquet").to_pylist():
        # The request whose arrival at the server is the first after it was sent: there is one at a time.
        mine = next((truth[at] for at in arrivals if at >= row["sent_ns"]), [])
        if row["error"] is None and len(mine) == len(row["chunk_ns"]):
            seen, true = gaps(row["chunk_ns"]), gaps(mine)
            errors += [abs(one - other) for one, other in zip(seen, true, strict=True)]
    assert len(errors) > 150
    assert sorted(errors)[int(0.99 * len(errors))] < MAX_ERROR_NS
    assert result.client.stamps in {"kernel", "event-loop"}


@dataclass(frozen=True)
class Plain:
    """A load test of a known schedule, looked at in several tests."""

    folder: Path
    result: BenchResult
    progress: Silent


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Plain:
    folder, progress = tmp_path_factory.mktemp("plain"), Silent()
    with null_server() as null:
        result = api.bench(spec(null.url, slo=Slo(ttft_s=1.0, tpot_s=0.5), window_s=1.0), folder, progress)
    return Plain(folder, result, progress)


def test_a_known_schedule_is_measured_as_what_it_is_and_every_gate_passes(plain: Plain):
    result = plain.result
    assert not failed(result)
    measures = result.measures
    assert measures is not None
    assert measures.ttft.quantiles.p50_s == pytest.approx(0.05, abs=0.004)
    assert measures.tpot.quantiles.p50_s == pytest.approx(0.02, abs=0.002)
    assert measures.itl.quantiles.p50_s == pytest.approx(0.02, abs=0.002)
    # One answer: 0.05 s and 19 gaps of 0.02 s for 20 tokens; 8 streams at once.
    assert measures.output_tokens_per_s == pytest.approx(8 * 20 / 0.43, rel=0.1)
    assert measures.goodput_per_s == pytest.approx(measures.requests_per_s)
    assert (measures.mean_output_tokens, result.errors) == (20, {})
    assert result.realised["output_tokens_max"] == 20


def test_answers_of_one_length_do_not_end_all_at_once(tmp_path: Path):
    benched(tmp_path, arrival=Arrival(concurrency=16), workload=Synthetic(input=fixed(16), output=fixed(40)))
    rows = pq.read_table(tmp_path / "requests.parquet").to_pylist()
    ends = sorted(row["ended_ns"] for row in rows if row["error"] is None)
    whole_s = 0.05 + 39 * 0.02
    # Sixteen streams, spread evenly: one ends each sixteenth of an answer's time. In step it would be all of it.
    assert max(gaps(ends)) < whole_s * 1e9 / 3


def test_it_leaves_every_request_and_files_that_other_tools_read(plain: Plain):
    folder, result = plain.folder, plain.result
    assert {path.name for path in folder.iterdir()} == {"requests.parquet", "result.json", "vllm.json", "llm-d.json"}
    assert BenchResult.model_validate_json((folder / "result.json").read_text()) == result
    theirs = json.loads((folder / "vllm.json").read_text())
    assert result.measures is not None
    assert theirs["median_ttft_ms"] == pytest.approx(1000 * (result.measures.ttft.quantiles.p50_s or 0), rel=0.01)
    (imported,) = api.import_results([folder / "vllm.json"])
    assert imported.tool


def test_the_live_display_hears_of_warm_up_and_windows(plain: Plain):
    lives = plain.progress.lives
    assert {live.phase for live in lives} >= {"warming up", "measuring"}
    assert max(live.in_flight for live in lives) == 8


def test_several_load_processes_add_up_to_one_load(tmp_path: Path):
    result = benched(tmp_path, processes=2, arrival=Arrival(concurrency=9))
    assert not failed(result)
    assert result.client.processes == 2
    indices = [row["index"] for row in pq.read_table(tmp_path / "requests.parquet").to_pylist()]
    assert len(indices) == len(set(indices))
    assert {index % 2 for index in indices} == {0, 1}
    assert result.measures is not None
    assert result.measures.max_in_flight == 9


def test_an_open_law_sends_on_time_and_latency_counts_from_when_it_was_due(tmp_path: Path):
    result = benched(tmp_path, arrival=Arrival(kind="poisson", rate_per_s=30.0), window_s=1.0)
    assert not failed(result)
    measures = result.measures
    assert measures is not None
    assert measures.sent_per_s == pytest.approx(30.0, rel=0.5)
    assert result.client.schedule_error_p50_s is not None
    assert 0 <= result.client.schedule_error_p50_s < 0.01
    due, actual = measures.ttft_from_intended.quantiles, measures.ttft.quantiles
    assert due.p50_s is not None
    assert actual.p50_s is not None
    assert due.p50_s >= actual.p50_s


def test_a_cap_on_what_is_in_flight_hides_no_waiting(tmp_path: Path):
    """20 requests/s of 0.43 s each want 8.6 streams; with 4 the queue grows, here and not at the server."""
    law = Arrival(kind="constant", rate_per_s=20.0, concurrency=4)
    result = benched(tmp_path, arrival=law, warmup_max_s=3.0, window_s=1.0)
    measures = result.measures
    assert measures is not None
    assert measures.ttft.quantiles.p50_s == pytest.approx(0.05, abs=0.01)
    assert (measures.ttft_from_intended.quantiles.p50_s or 0) > 0.3
    assert "offered-load-achieved" in failed(result)


@pytest.mark.parametrize(
    ("fault", "gate", "kind"),
    [("503", "no-errors", "http-503"), ("in-band", "no-errors", "in-band"), ("zero-tokens", "no-errors", "no-content")],
)
def test_requests_that_fail_are_counted_by_kind_and_void_the_numbers(tmp_path: Path, fault: str, gate: str, kind: str):
    with serving(lambda n: Behaviour(fault=fault if n % 7 == 3 else "none")) as server:
        result = api.bench(spec(server.url, model="tiny"), tmp_path, Silent())
    assert gate in failed(result)
    assert set(result.errors) == {kind}
    assert not result.valid


def test_a_failed_gate_says_what_to_do(tmp_path: Path):
    with serving(Behaviour(fault="warm-cache")) as server:
        result = api.bench(spec(server.url, model="tiny"), tmp_path, Silent())
    assert all(gate.remedy for gate in result.gates if not gate.passed)
    assert "prefix-cache-as-declared" in failed(result)


def test_a_conversation_carries_its_history_and_waits_for_the_answer(tmp_path: Path):
    path = tmp_path / "talk.jsonl"
    talks = [[{"user": f"{n} {turn}", "output_tokens": 4} for turn in ("first", "second")] for n in range(400)]
    path.write_text("".join(json.dumps({"turns": turns}) + "\n" for turns in talks))
    workload = Dataset(kind="conversations", path=str(path))
    with serving(Behaviour()) as server:
        asked = spec(server.url, model="tiny", endpoint="chat", workload=workload, arrival=Arrival(concurrency=2))
        api.bench(asked, tmp_path / "out", Silent())
        bodies = [seen.body["messages"] for seen in server.seen if "messages" in seen.body]
    second = [messages for messages in bodies if len(messages) == 3]
    assert second
    assert all([m["role"] for m in messages] == ["user", "assistant", "user"] for messages in second)
    assert all("w0" in messages[1]["content"] for messages in second)


def test_where_nobody_listens_that_is_said_and_nothing_is_written(tmp_path: Path):
    with pytest.raises(EngineError, match="did not answer"):
        api.bench(spec("http://127.0.0.1:9"), tmp_path / "out", Silent())
    assert not (tmp_path / "out").exists()


def test_a_model_that_is_not_served_is_refused_with_those_that_are(tmp_path: Path):
    with null_server() as null, pytest.raises(UsageError) as refused:
        api.bench(spec(null.url, model="other"), tmp_path, Silent())
    assert "null" in (refused.value.hint or "")


def test_a_key_that_is_not_in_the_environment_is_refused_before_any_load(tmp_path: Path):
    with null_server() as null, pytest.raises(UsageError, match="NO_SUCH_KEY"):
        api.bench(spec(null.url, api_key_env="NO_SUCH_KEY"), tmp_path, Silent())


def test_a_sweep_measures_every_load_with_prompts_of_its_own(tmp_path: Path):
    with null_server() as null:
        found = api.sweep(spec(null.url), [4, 1], tmp_path, Silent())
    assert [point.spec.arrival.concurrency for point in found.points] == [1, 4]
    assert len({point.workload_sha256 for point in found.points}) == 2
    assert found.knee_reason


class Impatient(Silent):
    """Presses Ctrl-C as soon as the load runs."""

    def tick(self, live: Live) -> None:
        raise KeyboardInterrupt


def test_an_interrupted_test_leaves_its_folder_free_for_the_same_command(tmp_path: Path):
    with null_server() as null, pytest.raises(KeyboardInterrupt):
        api.bench(spec(null.url), tmp_path / "out", Impatient())
    assert not (tmp_path / "out").exists()


def test_the_null_server_of_a_calibration_ends_with_whoever_started_it(tmp_path: Path):
    null = Piped("assay.load.null_server", ["--end-with-stdin"], tmp_path / "log")
    null.end()
    assert null.exit_code() == 0  # by itself: a kill would be a negative one


def test_the_last_request_of_a_trace_is_waited_for_though_nothing_is_in_flight_before_it(tmp_path: Path):
    file = tmp_path / "trace.csv"
    moments = ("46.0", "46.2", "46.4", "46.6", "48.0")
    rows = [f"2023-11-16 18:15:{moment}00000,20,4" for moment in moments]
    file.write_text("\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *rows, ""]))
    workload = Dataset(kind="azure", path=str(file))
    result = benched(tmp_path / "out", workload=workload, arrival=Arrival(kind="trace"), window_s=5.0)
    assert not failed(result)
    assert result.num_requests == len(moments)


def test_an_address_that_redirects_is_refused_with_the_one_it_leads_to(tmp_path: Path):
    with (
        null_server() as null,
        redirecting(null.url) as url,
        pytest.raises(UsageError, match="redirects to") as refused,
    ):
        api.bench(spec(url), tmp_path, Silent())
    assert null.url in refused.value.message


@contextmanager
def redirecting(to: str) -> Iterator[str]:
    class Elsewhere(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(307)
            self.send_header("Location", to + self.path)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def listing(*models: dict[str, str]) -> Iterator[str]:
    """A server that says which models it serves, and nothing else."""
    said = json.dumps({"data": list(models)}).encode()

    class Listing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.path == "/v1/models"
            self.send_response(200 if known else 404)
            self.send_header("Content-Length", str(len(said) if known else 0))
            self.end_headers()
            self.wfile.write(said if known else b"")

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Listing) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_several_models_of_which_none_was_named_are_refused_with_their_names():
    with listing({"id": "big", "root": "org/big"}, {"id": "small", "root": "org/small"}) as url:
        with pytest.raises(UsageError, match="serves 2 models, and none was named") as refused:
            Server(url).served()
        assert Server(url).served("small").model == "small"
    assert "--model: big, small" in (refused.value.hint or "")


def test_a_proxy_that_the_environment_names_is_not_asked(monkeypatch: pytest.MonkeyPatch):
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with listing({"id": "m"}) as url:
        assert Server(url).served().model == "m"


def test_a_model_with_adapters_and_further_names_is_taken_and_a_note_says_so():
    base, alias = {"id": "base", "root": "org/m"}, {"id": "alias", "root": "org/m"}
    adapter = {"id": "lora", "root": "adapters/lora", "parent": "base"}
    with listing(base, alias, adapter) as url:
        served = Server(url).served()
    assert served.model == "base"
    assert "no model was named: base was taken; alias, lora are other names or adapters" in (served.note or "")
    with listing(base) as url:
        assert Server(url).served().note is None


def test_what_was_decided_for_the_user_is_recorded(tmp_path: Path):
    with null_server() as null:
        prepared = prepare(spec(null.url, model="", window_s=0.4, windows=1))
        noted = replace(prepared, served=replace(prepared.served, note="no model was named: null was taken"))
        result = measure_point(noted, tmp_path, Silent()).result
    assert prepared.spec.model == "null"
    assert result.notes == ["no model was named: null was taken"]


def test_a_result_above_the_physical_ceiling_does_not_count(tmp_path: Path):
    result = benched(tmp_path, ceiling_tokens_per_s=100.0, ceiling_source="bandwidth over bytes a token")
    gate = next(gate for gate in result.gates if not gate.passed)
    assert failed(result) == {"below-physical-ceiling"}
    assert "of the ceiling of 100 (bandwidth over bytes a token)" in gate.evidence
    assert gate.remedy


def test_a_result_at_or_below_the_ceiling_counts():
    assert physical_ceiling(100.0, 100.0, "given").passed
    assert not physical_ceiling(100.1, 100.0, "given").passed


def test_the_windows_of_a_ramp_begin_when_the_rate_has_risen(tmp_path: Path):
    law = Arrival(kind="ramp", start_rate_per_s=1.0, rate_per_s=40.0, ramp_s=1.5)
    result = benched(tmp_path, arrival=law, window_s=1.0)
    assert not failed(result)
    assert min(point.at_s for point in result.series if point.measured) >= 1.5
    assert result.measures is not None
    assert result.measures.offered_per_s == 40.0
    assert result.measures.sent_per_s == pytest.approx(40.0, rel=0.4)
