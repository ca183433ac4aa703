"""Stands in for `trtllm-serve`: options as the source of one commit declares them, a log, and endpoints.

Tokens are bytes, and the token after a prompt is made of the prompt's sum.
"""

from __future__ import annotations

import json
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import click
import yaml

VERSION = "1.2.0"
STATE: dict[str, Any] = {}
print(f"[TensorRT-LLM] TensorRT LLM version: {VERSION}", flush=True)  # noqa: T201 - what the program says


def say(level: str, text: str) -> None:
    click.echo(f"[{time.strftime('%m/%d/%Y-%H:%M:%S')}] [TRT-LLM] [{level}] {text}")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        answers = {
            "/health": {},
            "/version": {"version": VERSION},
            "/v1/models": {"data": [{"id": STATE["name"]}]},
            "/metrics": [{"iter": 1, "numActiveRequests": 0, "kvCacheStats": {"usedNumBlocks": 3}}],
        }
        self.answer(answers.get(self.path))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        good = self.path == "/v1/completions" and body["model"] == STATE["name"] and body["detokenize"] is False
        self.answer({"choices": [{"text": "", "token_ids": [sum(body["prompt"]) % 251]}]} if good else None)

    def answer(self, content: Any) -> None:
        body = json.dumps(content).encode()
        self.send_response(404 if content is None else 200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def options() -> list[click.Option]:
    kinds = {"int": click.INT, "float": click.FLOAT}
    rows = json.loads((Path(__file__).resolve().parent / "flags.json").read_text(encoding="utf-8"))
    made = []
    for row in rows:
        about: dict[str, Any] = {"help": "About it.", "show_default": row["default"] is not None}
        if row["kind"] == "switch":
            made.append(click.Option(row["names"], is_flag=True, **about))
        else:
            kind = click.Choice(row["choices"]) if row["choices"] else kinds.get(row["kind"], click.STRING)
            made.append(click.Option(row["names"], type=kind, default=row["default"], **about))
    return made


def serve(**given: Any) -> None:
    """Serve MODEL."""
    file = given.get("config") or given.get("extra_llm_api_options")
    extra = yaml.safe_load(Path(file).read_text(encoding="utf-8")) if file else {}
    say("I", "Using LLM with PyTorch backend")
    if "no_such_option" in extra:
        say("E", "1 validation error for TorchLlmArgs: no_such_option: Extra inputs are not permitted")
        raise SystemExit(1)
    if extra.get("enable_attention_dp") and given["tensor_parallel_size"] == 1:
        say("W", "enable_attention_dp is ignored because tensor_parallel_size is 1")
    click.echo("[TensorRT-LLM][INFO] [MemUsageChange] Allocated 0.54 GiB for max tokens in paged KV cache (16576).")
    click.echo("[TensorRT-LLM][INFO] [MemUsageChange] Allocated 41.32 GiB for max tokens in paged KV cache (338432).")
    say("I", f"max_seq_len=8192, max_num_requests=256, max_num_tokens={given['max_num_tokens'] or 8192}")
    STATE.update(name=os.path.basename(given["model"]), extra=extra)  # noqa: PTH119 - a name may be a hub's
    server = ThreadingHTTPServer((given["host"], given["port"]), Handler)
    click.echo(f"INFO:     Uvicorn running on http://{given['host']}:{given['port']} (Press CTRL+C to quit)")
    server.serve_forever()


click.Group(
    "trtllm-serve", [click.Command("serve", callback=serve, params=[click.Argument(["model"]), *options()])]
).main()
