"""A completions server that misbehaves on request and logs when it sent what.

In tests it runs on a thread of its own (`serving`). `python hostile_server.py LOG [in-step]` runs it as a process that
prints its port, and writes the send times of all content chunks to LOG when its standard input closes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import threading
import time
import zlib
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """How one request is answered."""

    fault: str = "none"
    first_s: float = 0.01
    gap_s: float = 0.005
    tokens_per_chunk: int = 1
    in_step: bool = False
    """All streams get their chunks at the same instants, multiples of `gap_s`, as from a batching engine."""


@dataclass(slots=True)
class Seen:
    """One request as the server saw it."""

    number: int
    body: dict[str, Any]
    content_ns: list[int] = field(default_factory=list)


Script = Callable[[int], Behaviour]
Send = Callable[[bytes], Awaitable[None]]


def event(payload: dict[str, Any] | str) -> bytes:
    text = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)
    return f"data: {text}\n\n".encode()


def choice(text: str, finish: str | None = None, **usage: int) -> dict[str, Any]:
    chunk: dict[str, Any] = {"choices": [{"index": 0, "text": text, "finish_reason": finish}]}
    return {**chunk, "usage": usage} if usage else chunk


def delta(finish: str | None = None, **content: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": content, "finish_reason": finish}]}


class HostileServer:
    """Answers the n-th request (0, 1, 2 ...) as `script(n)` says."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.seen: list[Seen] = []
        self.handlers: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self.port = 0
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        idle_turns = 0
        while idle_turns < 5:  # a connection may still be on its way from the listening socket to its handler
            idle_turns = 0 if self.handlers else idle_turns + 1
            for handler, writer in list(self.handlers.items()):
                writer.transport.abort()
                handler.cancel()
            await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handler = asyncio.current_task()
        assert handler is not None
        self.handlers[handler] = writer
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            lines = head.split(b"\r\n")
            length = next((int(line[15:]) for line in lines if line.lower().startswith(b"content-length")), 0)
            path = lines[0].split(b" ")[1].decode()
            if not path.endswith("/completions"):
                await self._tell(path, await reader.readexactly(length), writer)
                return
            seen = Seen(len(self.seen), json.loads(await reader.readexactly(length)))
            self.seen.append(seen)
            await self._answer(seen, self.script(seen.number), writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client hung up, or the test is over
        finally:
            del self.handlers[handler]
            writer.close()

    async def _tell(self, path: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        """What a server says of itself: never hostile."""
        answers: dict[str, Any] = {"/v1/models": {"data": [{"id": "tiny", "object": "model"}]}}
        if path == "/tokenize":
            text = json.loads(body).get("content") or ""
            answers[path] = {"tokens": [zlib.crc32(word.encode()) % 50_000 for word in text.split()]}
        status = b"200 OK" if path in answers else b"404 Not Found"
        said = json.dumps(answers.get(path, {})).encode()
        writer.write(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(said), said))
        await writer.drain()

    async def _answer(self, seen: Seen, how: Behaviour, writer: asyncio.StreamWriter) -> None:
        if how.fault in {"429", "503"}:
            body = json.dumps({"error": {"message": "no slot is free", "code": int(how.fault)}}).encode()
            writer.write(b"HTTP/1.1 %s Nope\r\nContent-Length: %d\r\n\r\n%s" % (how.fault.encode(), len(body), body))
            await writer.drain()
            return
        if how.fault == "garbage":
            writer.write(b"\x16\x03\x01\x00 this is not HTTP\r\n\r\n")
            await writer.drain()
            return
        encoding = b"Content-Encoding: gzip\r\n" if how.fault == "gzip" else b""
        deflate = zlib.compressobj(wbits=31)
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n%sTransfer-Encoding: chunked\r\n\r\n" % encoding
        )

        async def send(data: bytes) -> None:
            if how.fault == "crlf":
                data = data.replace(b"\n", b"\r\n")
            if how.fault == "gzip":
                data = deflate.compress(data) + deflate.flush(zlib.Z_SYNC_FLUSH)
            if how.fault == "comments":
                data = b": keep-alive\n\n" + data
            pieces = [data[at : at + 3] for at in range(0, len(data), 3)] if how.fault == "utf8-split" else [data]
            for piece in pieces:
                writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                await writer.drain()
                if len(pieces) > 1:
                    await asyncio.sleep(0)

        if await self._stream(seen, how, send, writer):
            writer.write(b"0\r\n\r\n")
            await writer.drain()

    async def _stream(self, seen: Seen, how: Behaviour, send: Send, writer: asyncio.StreamWriter) -> bool:
        """Send the events; False when the response must not be ended properly."""
        wanted = seen.body["max_tokens"]
        number = {"short": wanted - 1, "long": wanted + 1, "zero-tokens": 0}.get(how.fault, wanted)
        if how.fault == "never":
            await asyncio.sleep(3600)
        if how.fault in {"empty-first", "role-first"}:
            await send(event(choice("") if how.fault == "empty-first" else delta(role="assistant", content="")))
        await self._tokens(seen, how, number, send)
        if how.fault == "reset":
            writer.transport.abort()
            return False
        if how.fault == "hang-up":
            return False
        if how.fault in {"in-band", "error-line"}:
            error = json.dumps({"error": {"message": "the slot was evicted", "type": "server_error"}})
            await send(f"{'error' if how.fault == 'error-line' else 'data'}: {error}\n\n".encode())
            return True
        if how.fault != "no-finish":
            await send(event(choice("", "length")))
        if how.fault != "no-usage":
            prompt = len(seen.body.get("prompt", [])) - (3 if how.fault == "cut-prompt" else 0)
            cached = prompt // 2 if how.fault == "warm-cache" else 0
            usage = {"prompt_tokens": prompt, "completion_tokens": number}
            await send(event({"choices": [], "usage": {**usage, "prompt_tokens_details": {"cached_tokens": cached}}}))
        if how.fault != "no-done":
            await send(event("[DONE]"))
        return True

    async def _tokens(self, seen: Seen, how: Behaviour, number: int, send: Send) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + how.first_s
        if how.fault in {"reset", "hang-up", "in-band", "error-line"}:
            number = max(1, number // 2)
        for first in range(0, number, how.tokens_per_chunk):
            await asyncio.sleep(max(due - loop.time(), 0))
            due += how.gap_s
            if how.in_step:
                due = round(due / how.gap_s) * how.gap_s
            text = "".join(f" w{n}" for n in range(first, min(first + how.tokens_per_chunk, number)))
            payload = event(self._chunk(how.fault, text, first))
            seen.content_ns.append(time.monotonic_ns())
            await send(payload)

    def _chunk(self, fault: str, text: str, first: int) -> dict[str, Any]:
        match fault:
            case "reasoning":
                return delta(reasoning_content=text)
            case "tool-calls":
                return delta(tool_calls=[{"index": 0, "function": {"arguments": text}}])
            case "invisible":
                return choice("")
            case "invisible-counted":
                return choice("", prompt_tokens=5, completion_tokens=first + 1)
            case "utf8-split":
                return choice("ü€😀")
        return choice(text)


@contextlib.contextmanager
def serving(script: Script | Behaviour) -> Iterator[HostileServer]:
    """A hostile server on a thread; stopped, with the thread ended, on leaving."""
    server = HostileServer(script if callable(script) else lambda _: script)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(server.start())
    thread = threading.Thread(target=loop.run_forever, name="hostile-server")
    thread.start()
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(timeout=10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=10)
        loop.close()


async def _serve_until_stdin_closes(in_step: bool) -> str:
    """Serve on a steady schedule; the log of who was sent what when, as JSON."""
    server = HostileServer(lambda _: Behaviour(first_s=0.08, gap_s=0.03, in_step=in_step))
    await server.start()
    print(server.port, flush=True)  # noqa: T201 - the parent process reads it
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await server.stop()
    return json.dumps([[seen.body.get("prompt", []), seen.content_ns] for seen in server.seen])


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(asyncio.run(_serve_until_stdin_closes("in-step" in sys.argv)))
