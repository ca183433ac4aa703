"""One live `trtllm-serve` that we started.

It lists its model under a name of its own making, reports no configuration but its version, and has no tokenizer
endpoint: texts are split by the tokenizer file of the model, in the engine's own Python.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from assay.engines import told
from assay.engines.launch_prefix import is_elsewhere
from assay.engines.launch_prefix_container import name_in
from assay.engines.launch_prefix_server import PrefixedServer
from assay.engines.trtllm_log import READY, facts, fallbacks
from assay.engines.venv import interpreter_of
from assay.errors import EngineError, MeasurementError
from assay.process import run_quiet

SPLIT = """
import json, os, sys
from tokenizers import Tokenizer
tokenizer = Tokenizer.from_file(os.path.join(sys.argv[1], "tokenizer.json"))
print(json.dumps([tokenizer.encode(text, add_special_tokens=False).ids for text in sys.argv[2:]]))
"""
PIECE_CHARACTERS = 20_000
"""A word of a command may have 128 KiB on Linux, a character four bytes."""
SPLIT_TIMEOUT_S = 120.0
PROMETHEUS = "/prometheus/metrics"
"""There when the option return_perf_metrics is set; `/metrics` tells of iterations, as JSON."""


class TrtllmServer(PrefixedServer):
    """Implements `assay.ports.Server`."""

    engine = "trtllm"
    poll_s = 0.25
    fatal = re.compile(r"Executor worker returned error|Failed to bind socket|MPI_ABORT was invoked|mpi4py.*Abort")
    lost = re.compile(r"Hang detected|Executor worker returned error|MPI_ABORT was invoked")
    ready = READY

    def is_healthy(self) -> bool:
        """`/health` answers; the name of the model is learnt on the way."""
        if not super().is_healthy():
            return False
        listed = self.http.get("/v1/models", absent={}).get("data") or []
        self.model_name = str(listed[0]["id"]) if listed else self.model_name
        return True

    def effective(self) -> dict[str, Any]:
        """`/version`, and facts of the log (`log.`): it reports no configuration."""
        return {"version": self.http.get("/version", absent={}).get("version"), **facts(self.log.text())}

    def fallbacks(self) -> list[str]:
        """Warnings of the log in which the engine says that it does something else than asked."""
        return fallbacks(self.log.text())

    def counters(self) -> dict[str, float]:
        """Prometheus metrics where they are switched on, and the newest iteration's figures (`iteration.`)."""
        rows = self.http.get("/metrics", absent=[])
        newest = told.flatten(rows[-1], "iteration") if isinstance(rows, list) and rows else {}
        figures = {key: float(value) for key, value in newest.items() if isinstance(value, int | float)}
        return {**told.counters(self.http.text(PROMETHEUS)), **figures}

    def next_token(self, prompt: list[int]) -> int:
        """The greedy token after a prompt: asked not to turn ids into text, it tells the ids."""
        body = {"model": self.model_name, "prompt": prompt, "max_tokens": 1, "temperature": 0, "detokenize": False}
        answer = self.http.post("/v1/completions", body)
        try:
            return int(answer["choices"][0]["token_ids"][0])
        except (KeyError, IndexError, TypeError) as error:
            message = f"/v1/completions answered without a token: {answer}"
            raise MeasurementError(message, hint=f"read {self.log.path}") from error

    def tokenize(self, text: str) -> list[int]:
        """Token ids, no special tokens, by the model's tokenizer.json.

        Raises:
            MeasurementError: the engine's Python cannot be run, or the model has no such file.
        """
        pieces = [text[at : at + PIECE_CHARACTERS] for at in range(0, len(text), PIECE_CHARACTERS)]
        words = [*self._python(), "-c", SPLIT, self._model_folder(), *pieces]
        try:
            said = run_quiet(words, timeout_s=SPLIT_TIMEOUT_S)
            split = json.loads(said.output.strip().splitlines()[-1]) if said.exit_code == 0 else None
        except (EngineError, ValueError, IndexError) as error:
            raise MeasurementError(
                f"the engine's Python does not split texts: {error}", hint="see docs/engines.md"
            ) from error
        if not isinstance(split, list):
            raise MeasurementError(
                f"the engine's Python does not split texts: {said.output.strip()[-300:]}",
                hint="the model's folder needs a tokenizer.json",
            )
        return [int(token) for ids in split for token in ids]

    def _python(self) -> Sequence[str]:
        argv = self.identity.argv
        if name := name_in(argv):
            return [argv[0], "exec", name, "python3"]
        program = argv[0]
        python = program if "python" in program.rpartition("/")[2] else interpreter_of(program)
        if is_elsewhere(argv) or python is None:
            raise MeasurementError(
                "trtllm-serve has no tokenizer endpoint, and its Python cannot be run from here",
                hint="launch it on this machine or in a container, or `assay bench` it by its address",
            )
        return [python]

    def _model_folder(self) -> str:
        argv = self.identity.argv
        return argv[argv.index("--host") - 1]
