"""Stands in for `python -m sglang.launch_server`: its arguments, its processes, its log and its endpoints.

The arguments are those that are recorded of the version; the rest is what the wheels of 0.4.6, 0.5.9 and 0.5.23 do.
Tokens are bytes, and the token after a prompt is made of the prompt's sum. What goes wrong is said by STANDIN_FAULT.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

VERSION = importlib.metadata.version("sglang")
OLD = tuple(map(int, VERSION.split(".")[:3])) < (0, 5, 3)
FAULT = os.environ.get("STANDIN_FAULT", "")
BOS = 1


def say(text: str, rank: str = "") -> None:
    print(f"[{time.strftime('%Y-%m-%d %H:%M:%S')}{rank}] {text}", flush=True)  # noqa: T201 - what the program says


def arguments() -> dict[str, Any]:
    if FAULT == "help":
        sys.exit("ImportError: libcuda.so.1: cannot open shared object file")
    parser = argparse.ArgumentParser(prog="launch_server.py")
    for row in json.loads((Path(__file__).parent / "flags.json").read_text(encoding="utf-8")):
        shown = f"about it (default: {row['default']})" if row["default"] is not None else "about it"
        if row["kind"] == "switch":
            parser.add_argument(*row["names"], action="store_true", help=shown)
        else:
            kind = {"int": int, "float": float}.get(row["kind"], str)
            many = {"nargs": "+"} if row["many"] else {}
            parser.add_argument(
                *row["names"], type=kind, choices=row["choices"] or None, default=row["default"], help=shown, **many
            )
    return vars(parser.parse_args())


def resolved(given: dict[str, Any]) -> dict[str, Any]:
    """What the engine makes of the arguments."""
    if given.get("enable_mixed_chunk") and given.get("speculative_algorithm"):
        say("Mixed chunked prefill is disabled because of using eagle speculative decoding.")
        given["enable_mixed_chunk"] = False
    if given.get("moe_a2a_backend") == "deepep":
        tp = given.get("tp_size") or given.get("tensor_parallel_size")
        say(f"DeepEP MoE is enabled. The expert parallel size is adjusted to the tensor parallel size[{tp}].")
        given["ep_size"] = tp
    return given


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    args: dict[str, Any]
    ready = False
    flushed = 0

    def do_GET(self) -> None:
        plain = {"/health": "", "/health_generate": "", "/metrics": self.metrics(), "/flush_cache": "Cache flushed.\n"}
        if self.path in plain:
            self.answer(plain[self.path].encode(), 200 if self.ready or self.path != "/health" else 503)
        elif self.path == "/get_server_info" or (self.path == "/server_info" and not OLD):
            state = {
                "max_total_num_tokens": 4096,
                "effective_max_running_requests_per_dp": 16,
                "last_gen_throughput": 1.5,
            }
            info = {**self.args, "max_total_num_tokens": 4096, "internal_states": [state], "version": VERSION}
            self.answer(json.dumps(info).encode())
        elif self.path == "/v1/models":
            self.answer(json.dumps({"data": [{"id": self.args["served_model_name"], "owned_by": "sglang"}]}).encode())
        else:
            self.answer(b"{}", 404)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        if self.path == "/generate":
            self.answer(json.dumps(generated(body)).encode())
        elif self.path == "/tokenize" and not OLD:
            tokens = list(body["prompt"].encode())
            self.answer(json.dumps({"tokens": tokens, "count": len(tokens), "max_model_len": 4096}).encode())
        elif self.path == "/flush_cache":
            Handler.flushed += 1
            self.answer(b"Cache flushed.\n")
        elif self.path in {"/start_profile", "/stop_profile"}:
            self.answer(b"Start profiling.\n")
        else:
            self.answer(b"{}", 404)

    def metrics(self) -> str:
        return (
            "# HELP sglang:num_running_reqs x\n# TYPE sglang:num_running_reqs gauge\n"
            f'sglang:num_running_reqs{{model_name="model"}} 0.0\nsglang:cache_flushes {self.flushed}.0\n'
        )

    def answer(self, content: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


def generated(body: dict[str, Any]) -> dict[str, Any]:
    prompt = body["input_ids"] if "input_ids" in body else [BOS, *body["text"].encode()]
    meta: dict[str, Any] = {"prompt_tokens": len(prompt), "completion_tokens": 1}
    if body.get("return_logprob"):
        meta["output_token_logprobs"] = [[-0.5, sum(prompt) % 251, None]]
        if body.get("logprob_start_len") == 0:
            meta["input_token_logprobs"] = [[None, token, None] for token in prompt]
    return {"text": "x", "meta_info": meta}


def main() -> None:
    given = arguments()
    if "--help" in sys.argv:
        return
    Handler.args = resolved(given)
    say("Attention backend not set. Use flashinfer backend by default.")
    scheduler = subprocess.Popen([sys.executable, "-c", "import time\nwhile True: time.sleep(1)"])
    signal.signal(
        signal.SIGTERM, lambda *_: (say("SIGTERM received. Draining requests and shutting down..."), sys.exit(0))
    )
    say("Load weight begin. avail mem=93.82 GB", " TP0")
    if FAULT == "scheduler":
        say("Scheduler hit an exception: Traceback (most recent call last):", " TP0")
        print("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", flush=True)  # noqa: T201 - what the program says
        say("Received sigquit from a child process. It usually means the child failed.")
        scheduler.kill()
        sys.exit(137)
    say("max_total_num_tokens=4096, chunked_prefill_size=2048, max_running_requests=16, context_len=4096", " TP0")
    server = ThreadingHTTPServer((given["host"], given["port"]), Handler)
    Handler.ready = True
    say("The server is fired up and ready to roll!")
    if token := os.environ.get("STANDIN_ECHO"):
        say(f"STANDIN_ECHO is {token}")
    server.serve_forever()


main()
