"""A shared prefix that a workload declares is really reused by a real server, and nothing where none is declared."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay import load, wiring
from assay.engines.llamacpp_server import LlamaServer
from assay.ports import CachesOnRequest
from assay.process import free_port
from assay.records.load import LoadRequest, LoadResult
from assay.records.spec import EMBEDDED, Target, Workload

pytestmark = pytest.mark.slow
QUICK = {
    "concurrency": 2,
    "input_tokens": (8, 12),
    "output_tokens": (4, 6),
    "window_s": 0.6,
    "windows": 2,
    "warmup_min_s": 0.3,
    "warmup_max_s": 8.0,
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    engine, target = wiring.engine("llamacpp"), Target(model=EMBEDDED, executable=EMBEDDED)
    build, log = engine.find(target), tmp_path_factory.mktemp("server") / "server.log"
    argv = engine.argv(
        build, engine.model(target).path, {"--ctx-size": 2048, "--parallel": 2, "--threads": 1}, free_port()
    )
    running = engine.launch(argv, {}, log, "server.log")
    assert isinstance(running, LlamaServer)
    running.wait_ready(60)
    yield running
    running.stop()


def played(server: LlamaServer, workload: Workload) -> LoadResult:
    shares = workload.shared_prefix_tokens > 0
    body = server.body_with_cache if shares else server.extra_body
    request = LoadRequest(
        base_url=server.base_url, model=server.model_name, workload=workload, seed=11, extra_body=dict(body)
    )
    return load.create().run(request, server.tokenize, lambda: server.failure() is None)


def test_prompts_that_share_a_prefix_are_served_from_the_cache_as_far_as_they_share(server: LlamaServer) -> None:
    assert isinstance(server, CachesOnRequest)
    result = played(server, Workload.model_validate({**QUICK, "shared_prefix_tokens": 96}))

    told = [one for one in result.samples if one.error is None and one.cached_tokens is not None]
    cached = sum(one.cached_tokens or 0 for one in told)
    prompt = sum(one.input_tokens or 0 for one in told)
    gate = next(one for one in result.gates if one.name == "prefix-cache-as-declared")
    assert len(told) > 5
    assert 0.5 * 96 * len(told) < cached <= 96 * len(told) + 0.01 * prompt
    assert gate.passed
    assert "are declared to be shared" in gate.evidence


def test_fresh_prompts_find_nothing_in_the_cache(server: LlamaServer) -> None:
    result = played(server, Workload.model_validate(QUICK))

    assert sum(one.cached_tokens or 0 for one in result.samples) == 0
