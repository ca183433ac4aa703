"""A server that somebody else runs, as a campaign sees it: it is there, it is measured, it is left as it was."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Mapping, Sequence
from socket import gaierror
from typing import Any

from assay.engines import told
from assay.engines.http_client import NOT_SERVED
from assay.engines.openai_client import OpenAiClient, base_url
from assay.engines.openai_listing import listed, optional, served, version_of
from assay.errors import AssayError, MeasurementError
from assay.ports import LaunchFailed
from assay.records.failure import Cause
from assay.records.run import Failure, ServerIdentity

NOBODY = 2**31 - 1
"""Stands where a process id would: no process can have it, so that nothing is ever ended (Linux counts to 2^22)."""
POLL_S = 1.0
GONE_S = 20.0
"""How long nobody may listen at an address before it counts as gone: the restart of a small server."""
LOOK_AGAIN_S = 10.0
"""How often it is asked whether it is still there while the load runs: the load itself notices sooner."""
TOKENIZERS = ("/tokenize", "/v1/tokenize")
FACTS = ("max_model_len", "owned_by", "root", "quantization")
"""Of its entry in `/v1/models`."""
PROPERTIES = ("total_slots", "default_generation_settings.n_ctx", "build_info")
"""Of llama.cpp's `/props`."""


class SomebodysServer:
    """Implements `assay.ports.ForeignServer`: there is no process."""

    extra_body: Mapping[str, bool | int | float | str] = {}

    def __init__(
        self, url: str, model_name: str, api_key_env: str | None, log_name: str, gone: set[str] | None = None
    ) -> None:
        """Remember the address; asks nothing yet.

        Args:
            url: its base.
            model_name: as it lists it.
            api_key_env: name of the variable that holds its key.
            log_name: path of our log relative to the campaign.
            gone: addresses that were waited for in vain: they are looked at once, and not waited for again.
        """
        self._gone = gone if gone is not None else set()
        self.base_url = base_url(url)
        self.model_name = model_name
        self.api_key_env = api_key_env
        self.http = OpenAiClient(url, api_key_env)
        self.identity = ServerIdentity(pid=NOBODY, create_time=0.0, port=self.http.port, argv=[self.base_url])
        self._log_name = log_name
        self._looked = time.monotonic()

    def wait_ready(self, timeout_s: float) -> float:
        """Wait until it lists the model; seconds that took.

        Where nobody listens there is nothing to wait for beyond `GONE_S`; a server that takes connections and is slow,
        or still loads, has the whole time. One that was waited for in vain before is not waited for again.

        Raises:
            LaunchFailed: it does not answer in time.
        """
        began = time.monotonic()
        while True:
            problem = self._problem()
            waited_s = time.monotonic() - began
            if problem is None:
                self._gone.discard(self.base_url)
                return waited_s
            if waited_s + POLL_S > self._patience_s(problem, timeout_s):
                self._gone.add(self.base_url)
                line = (
                    f"{self.base_url} does not answer after {waited_s:.0f} s: {problem.message}; it is not Assay's to "
                    "start: start it, then carry on with `assay run`"
                )
                raise LaunchFailed(Failure(stage="load", cause=Cause.TIMEOUT, line=line, log=self._log_name))
            time.sleep(POLL_S)

    def _patience_s(self, problem: AssayError, timeout_s: float) -> float:
        if self.base_url in self._gone:
            return 0.0
        return min(GONE_S, timeout_s) if _is_nobody(problem) else timeout_s

    def absence(self) -> str | None:
        """Why it cannot be measured right now; None while it lists the model."""
        problem = self._problem()
        return None if problem is None else problem.message

    def failure(self) -> Failure | None:
        """None while it answers, or is only slow to: under load that is no sign of death."""
        if time.monotonic() - self._looked < LOOK_AGAIN_S:
            return None
        problem = self._problem()
        self._looked = time.monotonic()
        if problem is None or _is_late(problem):
            return None
        line = f"{self.base_url} stopped answering: {problem.message}"
        return Failure(stage="under-load", cause=Cause.CRASHED, line=line, log=self._log_name)

    def effective(self) -> dict[str, Any]:
        """What it says of its model, its version and its limits; no more is anybody's business."""
        entry = next((one for one in listed(self.http) if one["id"] == self.model_name), {})
        properties = told.flatten(optional(self.http, "/props"))
        return {
            "model": self.model_name,
            "version": version_of(self.http),
            **{key: entry[key] for key in FACTS if entry.get(key) is not None},
            **{key: properties[key] for key in PROPERTIES if properties.get(key) is not None},
        }

    def fallbacks(self) -> list[str]:
        """Its log is not ours to read."""
        return []

    def counters(self) -> dict[str, float]:
        """`/metrics`, names as the server spells them; empty where it has none or keeps them to itself."""
        try:
            return told.counters(self.http.text("/metrics"))
        except MeasurementError:
            return {}

    def next_tokens(self, prompts: Sequence[list[int]]) -> list[int]:
        """One greedy token after each prompt: its id where the server tells it, else a number made of its text."""
        return [self._next_token(prompt) for prompt in prompts]

    def tokenize(self, text: str) -> list[int]:
        """Token ids, no special tokens, in whichever spelling it understands.

        Raises:
            MeasurementError: it tells no tokens; a campaign cannot make its prompts then.
        """
        for path in TOKENIZERS:
            for body in ({"model": self.model_name, "prompt": text, "add_special_tokens": False}, {"content": text}):
                status, content = self.http.exchange("POST", path, json.dumps(body))
                if status in NOT_SERVED:
                    break
                if tokens := _tokens(content):
                    return tokens
        raise MeasurementError(
            f"{self.base_url} tells no tokens ({' and '.join(TOKENIZERS)} do not answer)",
            hint=f"a campaign makes its prompts of token ids; `assay bench {self.base_url}` measures with text",
        )

    def rss_bytes(self) -> int | None:
        """Not known: its processes are not ours."""
        return None

    def stop(self) -> None:
        """Nothing: it was not started."""

    def _problem(self) -> AssayError | None:
        try:
            served(self.http, self.base_url, self.model_name)
        except AssayError as error:
            return error
        return None

    def _next_token(self, prompt: list[int]) -> int:
        body = {
            "model": self.model_name, "prompt": prompt, "max_tokens": 1, "temperature": 0, "logprobs": 1,
            "return_token_ids": True,
        }  # fmt: skip
        answer = self.http.post("/v1/completions", body)
        choices = answer.get("choices") if isinstance(answer, dict) else None
        if not isinstance(choices, list) or not choices:
            raise MeasurementError(f"/v1/completions answered without a choice: {answer}", hint="try it by hand")
        ids = choices[0].get("token_ids")
        return int(ids[0]) if isinstance(ids, list) and ids else zlib.crc32(str(choices[0].get("text")).encode())


def _is_nobody(problem: BaseException) -> bool:
    """Whether no server took the connection: refused, or no such host."""
    cause: BaseException | None = problem
    while cause is not None and not isinstance(cause, ConnectionRefusedError | gaierror):
        cause = cause.__cause__
    return cause is not None


def _is_late(problem: BaseException) -> bool:
    """Whether nothing worse happened than that an answer did not come in time."""
    cause: BaseException | None = problem
    while cause is not None and not isinstance(cause, TimeoutError):
        cause = cause.__cause__
    return cause is not None


def _tokens(content: bytes) -> list[int]:
    try:
        tokens = json.loads(content)["tokens"]
    except (ValueError, KeyError, TypeError):
        return []
    whole = isinstance(tokens, list) and all(isinstance(token, int) for token in tokens)
    return list(tokens) if whole else []
