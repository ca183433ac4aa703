"""What a server says of itself, asked politely: its models, limits, tokenizer and counters.

Every answer is optional: what a server does not tell is None, and whatever needs it says so.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import OpenerDirector, ProxyHandler, Request, build_opener

from assay.errors import EngineError, UsageError
from assay.load import tls
from assay.records.listing import chosen, entries, note

TIMEOUT_S = 10.0
_SAMPLE = re.compile(r"^([A-Za-z_:][\w:]*)(?:\{[^}]*\})?\s+([-+0-9.eE]+|NaN|[-+]?Inf)(?:\s+\d+)?$")
RUNNING = ("vllm:num_requests_running", "sglang:num_running_reqs", "llamacpp:requests_processing")
WAITING = ("vllm:num_requests_waiting", "sglang:num_queue_reqs", "llamacpp:requests_deferred")
GENERATED = ("vllm:generation_tokens_total", "sglang:generation_tokens_total", "llamacpp:tokens_predicted_total")
PREFIX_HITS = ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total", "sglang:cached_tokens_total")
PREFIX_QUERIES = (
    "vllm:prefix_cache_queries_total",
    "vllm:gpu_prefix_cache_queries_total",
    "sglang:prompt_tokens_total",
)


class NotJson(OSError):  # noqa: N818 - an answer, handled in this module
    """An answer that is no JSON."""


class Redirected(OSError):  # noqa: N818 - an answer, handled in this module
    """The server sends us elsewhere: the load would go to a door-keeper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """The server's own gauges and counters at one moment; None where it has none."""

    running: float | None = None
    waiting: float | None = None
    generated_tokens: float | None = None
    prefix_hits: float | None = None
    """Prompt tokens served from the prefix cache so far."""
    prefix_queries: float | None = None
    """Prompt tokens looked up so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A server as it presents itself."""

    model: str
    models: list[str]
    max_tokens: int | None
    """Input plus output tokens of one request."""
    engine: str | None
    note: str | None = None
    """How the model was chosen, where the server lists several and none was named."""


class Server:
    """One OpenAI-compatible server, asked over plain HTTP requests."""

    def __init__(self, url: str, api_key_env: str | None = None) -> None:
        """Remember the address; asks nothing yet.

        Raises:
            UsageError: it is not an http(s) address.
        """
        if not url.startswith(("http://", "https://")):
            raise UsageError(f"{url!r} is not an http address", hint="for example http://127.0.0.1:8000")
        base = url.rstrip("/")
        for endpoint in ("/chat/completions", "/completions", "/v1"):
            base = base.removesuffix(endpoint)
        self.url = base
        self._key = os.environ.get(api_key_env) if api_key_env else None

    def served(self, wanted: str | None = None) -> Served:
        """Which model it serves.

        Args:
            wanted: the model to use; None: the only one, whatever further names and adapters it is served under.

        Raises:
            EngineError: nobody answers, or no OpenAI-compatible server does.
            UsageError: the wanted model is not served, or none was named and several are.
        """
        try:
            answer = self._ask("/v1/models")
        except Redirected as elsewhere:
            raise UsageError(f"{self.url} redirects to {elsewhere}", hint="give the address that it leads to") from None
        except OSError as error:
            message = f"{self.url}/v1/models did not answer: {_said(error)}"
            raise EngineError(message, hint=_next_step(error, self.url)) from error
        listed = entries(answer)
        if not listed and wanted is None:
            raise EngineError(f"{self.url}/v1/models names no model", hint="name one with --model")
        taken = chosen(listed, self.url, wanted) if listed else {"id": wanted}
        return Served(
            model=str(taken["id"]),
            models=[str(entry["id"]) for entry in listed],
            max_tokens=self._max_tokens(taken),
            engine=self._engine(taken),
            note=note(listed, taken) if wanted is None else None,
        )

    def tokenize(self, text: str) -> list[int] | None:
        """The text in the server's own tokens; None where its tokenizer cannot be asked."""
        for body in ({"content": text}, {"prompt": text, "add_special_tokens": False}):
            try:
                answer = self._ask("/tokenize", body)
            except OSError:
                continue
            tokens = answer.get("tokens") if isinstance(answer, dict) else None
            if isinstance(tokens, list) and tokens and all(isinstance(token, int) for token in tokens):
                return tokens
        return None

    def prompt_tokens(self, model: str, text: str, *, chat: bool) -> int | None:
        """How many tokens it counts for a text, by its own `usage`; generates one token.

        Raises:
            EngineError: it refuses the request.
        """
        content = {"messages": [{"role": "user", "content": text}]} if chat else {"prompt": text}
        path = "/v1/chat/completions" if chat else "/v1/completions"
        try:
            answer = self._ask(path, {"model": model, "max_tokens": 1, "temperature": 0, **content}, timeout_s=120)
        except NotJson:
            return None  # it streams although it was not asked to
        except OSError as error:
            raise EngineError(
                f"{self.url}{path} refuses a plain request: {_said(error)}", hint="try it by hand; is --endpoint right?"
            ) from error
        usage = answer.get("usage") if isinstance(answer, dict) else None
        count = usage.get("prompt_tokens") if isinstance(usage, dict) else None
        return count if isinstance(count, int) else None

    def counters(self) -> Counters | None:
        """What `/metrics` says now; None where there is none."""
        try:
            samples = parse_metrics(self._read("/metrics").decode("utf-8", "replace"))
        except OSError:
            return None
        if not samples:
            return None
        return Counters(
            running=_first(samples, RUNNING),
            waiting=_first(samples, WAITING),
            generated_tokens=_first(samples, GENERATED),
            prefix_hits=_first(samples, PREFIX_HITS),
            prefix_queries=_first(samples, PREFIX_QUERIES),
        )

    def _engine(self, entry: dict[str, Any]) -> str | None:
        owner = str(entry.get("owned_by") or "")
        known = next((name for name in ("vllm", "sglang", "llamacpp", "tensorrt_llm") if name in owner.lower()), None)
        version = self._optional("/version").get("version") or self._optional("/get_server_info").get("version")
        version = version or self._optional("/props").get("build_info")
        return " ".join(str(part) for part in (known, version) if part) or None

    def _max_tokens(self, entry: dict[str, Any]) -> int | None:
        if isinstance(entry.get("max_model_len"), int):
            return int(entry["max_model_len"])
        settings = self._optional("/props").get("default_generation_settings")
        context = settings.get("n_ctx") if isinstance(settings, dict) else None
        return context if isinstance(context, int) and context > 0 else None

    def _optional(self, path: str) -> dict[str, Any]:
        try:
            answer = self._ask(path)
        except OSError:
            return {}
        return answer if isinstance(answer, dict) else {}

    def _ask(self, path: str, body: dict[str, Any] | None = None, *, timeout_s: float = TIMEOUT_S) -> Any:
        try:
            return json.loads(self._read(path, body, timeout_s=timeout_s))
        except ValueError as error:
            raise NotJson(f"the answer is not JSON: {error}") from error

    def _read(self, path: str, body: dict[str, Any] | None = None, *, timeout_s: float = TIMEOUT_S) -> bytes:
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {self._key}"} if self._key else {})
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.url + path, data=data, headers=headers)  # noqa: S310 - the scheme is checked above
        try:
            with opener().open(request, timeout=timeout_s) as response:
                if response.url != request.full_url:
                    raise Redirected(str(response.url))
                return bytes(response.read())
        except HTTPException as error:
            raise OSError(f"the answer is not HTTP as it should be: {error!r}") from error


def parse_metrics(text: str) -> dict[str, float]:
    """Prometheus text as sums over the labels of each name; lines that are none are left out."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        if match := _SAMPLE.match(line.strip()):
            found[match[1]] = found.get(match[1], 0.0) + float(match[2])
    return found


@lru_cache(maxsize=1)
def opener() -> OpenerDirector:
    """Opens URLs straight at their address, as the load goes: a proxy of the environment would answer for it."""
    return build_opener(ProxyHandler({}))


def _first(samples: dict[str, float], names: Iterable[str]) -> float | None:
    return next((samples[name] for name in names if name in samples), None)


def _said(error: OSError) -> str:
    if isinstance(error, HTTPError):
        return f"HTTP {error.code} {error.read(300).decode('utf-8', 'replace')}"
    return str(error.reason if isinstance(error, URLError) else error)


def _next_step(error: OSError, url: str) -> str:
    if isinstance(error, HTTPError) and error.code in {401, 403}:
        return "name the environment variable that holds the key: --api-key-env NAME"
    problem = error.reason if isinstance(error, URLError) else error
    return tls.hint(problem, url) or "is the server up, and is this its base address?"
