"""One live SGLang server that we started.

Its tokenizer, scheduler and detokenizer are processes of one session. When a child dies, the parent is told by SIGQUIT
and kills the others; on SIGTERM the log ends in what looks like a crash. `stop` ends all of them, and nothing that is
said after it is read.
"""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from assay.engines.http_client import NOT_SERVED
from assay.engines.launch_prefix_server import PrefixedServer
from assay.engines.sglang_log import READY, facts, fallbacks
from assay.engines.sglang_state import reported
from assay.errors import MeasurementError

MODEL_NAME = "model"
DIED = re.compile(
    r"Received sigquit from a child process|(?:Scheduler|DataParallelController|DetokenizerManager|TokenizerManager|"
    r"TpModelWorkerClient) hit an exception"
)
PIECE_CHARACTERS = 2000
"""Texts for servers without a tokenizer endpoint are asked about in pieces that fit every context."""
PROFILE_TIMEOUT_S = 600.0


class SglangServer(PrefixedServer):
    """Implements `assay.ports.Server`; more: cache and profiler."""

    engine = "sglang"
    model_name = MODEL_NAME
    extra_body: Mapping[str, bool | int | float | str] = {"return_token_ids": True}
    """What is no text (a special token, half a character) is content all the same; versions without it ignore it."""
    poll_s = 0.25
    fatal = DIED
    lost = DIED
    ready = READY

    def is_healthy(self) -> bool:
        """It said that it serves, and `/health` agrees: before 0.5 that alone answers 200 while it still warms up."""
        return self.log.has_said(READY) and super().is_healthy()

    def effective(self) -> dict[str, Any]:
        """`/server_info` (`/get_server_info` before it had that name) and facts of the log.

        Keys: the argument's own name (`mem_fraction_static`), `state.`, `log.`, `version`.
        """
        info = self.http.get("/server_info", absent={}) or self.http.get("/get_server_info", absent={})
        return {**reported(info), **facts(self.log.text())}

    def fallbacks(self) -> list[str]:
        """Lines of the log in which the engine says that it does something else than asked."""
        return fallbacks(self.log.text())

    def next_token(self, prompt: list[int]) -> int:
        """The greedy token after a prompt, by `/generate` with log probabilities: the same in every version."""
        answer = self._generated({"input_ids": prompt}, start=-1)
        try:
            return int(answer["output_token_logprobs"][0][1])
        except (KeyError, IndexError, TypeError) as error:
            raise MeasurementError(
                f"/generate answered without a token: {answer}", hint=f"read {self.log.path}"
            ) from error

    def tokenize(self, text: str) -> list[int]:
        """Token ids, no special tokens: by `/tokenize`, or where there is none by the log probabilities of a prompt.

        The second way takes the text in pieces; at their seams it may be cut otherwise than the whole would be.
        """
        body = {"model": self.model_name, "prompt": text, "add_special_tokens": False}
        status, content = self.http.exchange("POST", "/tokenize", json.dumps(body))
        if status not in NOT_SERVED:
            return _tokens(status, content)
        special = _alike(self._prompt_tokens("0"), self._prompt_tokens("z"))
        pieces = [text[at : at + PIECE_CHARACTERS] for at in range(0, len(text), PIECE_CHARACTERS)]
        return [token for piece in pieces for token in self._prompt_tokens(piece)[special:]]

    def reset_prefix_cache(self) -> bool:
        """Forget what earlier prompts left (`/flush_cache`); False where this server cannot be told to.

        Raises:
            MeasurementError: it refuses, because requests are running.
        """
        return self.http.act("/flush_cache")

    def start_profile(self, folder: Path | None = None) -> bool:
        """Begin a torch trace, written into a folder of the server's machine; False where this server has none."""
        body = json.dumps({"output_dir": str(folder)} if folder else {})
        status, content = self.http.exchange("POST", "/start_profile", body, timeout_s=PROFILE_TIMEOUT_S)
        if status in NOT_SERVED:
            return False
        if status != http.client.OK:
            raise MeasurementError(
                f"POST /start_profile: HTTP {status}: {content[:300]!r}", hint=f"read {self.log.path}"
            )
        return True

    def stop_profile(self) -> bool:
        """End the trace; it is written when this returns."""
        return self.http.act("/stop_profile", timeout_s=PROFILE_TIMEOUT_S)

    def _prompt_tokens(self, text: str) -> list[int]:
        """The server's own ids of a text, special ones before it included."""
        answer = self._generated({"text": text}, start=0)
        try:
            return [int(row[1]) for row in answer["input_token_logprobs"]]
        except (KeyError, IndexError, TypeError) as error:
            message = f"/generate answered without the prompt's tokens: {str(answer)[:300]}"
            raise MeasurementError(message, hint="this SGLang has no /tokenize; a newer one has") from error

    def _generated(self, prompt: dict[str, Any], *, start: int) -> dict[str, Any]:
        """The `meta_info` of one greedy token; `start`: from which prompt token on probabilities are wanted."""
        sampling = {"max_new_tokens": 1, "temperature": 0}
        body = {**prompt, "sampling_params": sampling, "return_logprob": True, "logprob_start_len": start}
        answer = self.http.post("/generate", body)
        meta = answer.get("meta_info") if isinstance(answer, dict) else None
        return meta if isinstance(meta, dict) else {}


def _alike(one: list[int], other: list[int]) -> int:
    """How many tokens two texts that begin differently begin with alike: the special ones."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _tokens(status: int, content: bytes) -> list[int]:
    try:
        answer = json.loads(content) if status == http.client.OK else {}
        return [int(token) for token in answer["tokens"]]
    except (ValueError, KeyError, TypeError) as error:
        raise MeasurementError(
            f"POST /tokenize: HTTP {status}: {content[:300]!r}", hint="is --skip-tokenizer-init given? leave it out"
        ) from error
