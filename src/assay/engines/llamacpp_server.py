"""One live llama.cpp server that we started."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.engines import told
from assay.engines.http_server import HttpServer
from assay.engines.llamacpp_failures import FATAL, classify
from assay.engines.llamacpp_log import facts, fallbacks
from assay.errors import MeasurementError
from assay.records.run import Failure

DROPPED = ("chat_template", "ui_settings", "webui_settings", "media_marker")
"""Large texts among the properties that say nothing of speed."""


class LlamaServer(HttpServer):
    """Implements `assay.ports.Server`."""

    engine = "llamacpp"
    fatal = FATAL
    poll_s = 0.02
    last_words_s = 5.0
    extra_body: Mapping[str, bool | int | float | str] = {"cache_prompt": False}
    body_with_cache: Mapping[str, bool | int | float | str] = {"cache_prompt": True}

    def effective(self) -> dict[str, Any]:
        """`/props` flattened, the slots' common facts (`slots.`), and what only the log says (`log.`)."""
        props = told.flatten(self.http.get("/props"))
        reported = {key: value for key, value in props.items() if not key.startswith(DROPPED)}
        return {**reported, **_common(self.http.get("/slots", absent=[])), **facts(self.log.text())}

    def fallbacks(self) -> list[str]:
        """Lines of the log in which the engine says that it does something else than asked."""
        return fallbacks(self.log.text())

    def next_token(self, prompt: list[int]) -> int:
        """The greedy token after a prompt, prompt cache off."""
        body = {"prompt": prompt, "n_predict": 1, "temperature": 0, "cache_prompt": False, "return_tokens": True}
        answer = self.http.post("/completion", body)
        if not answer.get("tokens"):
            raise MeasurementError(f"/completion answered without a token: {answer}", hint=f"read {self.log.path}")
        return int(answer["tokens"][0])

    def tokenize(self, text: str) -> list[int]:
        """Token ids, no special tokens."""
        return [int(token) for token in self.http.post("/tokenize", {"content": text})["tokens"]]

    def classify(self, *, timed_out: bool = False) -> Failure:
        """Rules of its own: the embedded wheel exits 1 for everything."""
        code = self.exit_code
        return classify(self.log.text(), self._log_name, code, was_ready=self._was_ready, timed_out=timed_out)


def _common(slots: Any) -> dict[str, Any]:
    """What the slots say, where all say the same; what they are busy with is left out."""
    kept = ("n_ctx", "speculative")
    rows = [slot for slot in slots if isinstance(slot, dict)] if isinstance(slots, list) else []
    values = {key: {slot[key] for slot in rows if key in slot} for key in kept}
    return {f"slots.{key}": found.pop() for key, found in values.items() if len(found) == 1}
