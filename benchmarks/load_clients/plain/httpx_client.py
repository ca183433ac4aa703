"""The usual httpx client: one client object, one task for each stream, events parsed as their lines arrive."""

from __future__ import annotations

import asyncio
import time

import httpx
from common import DATA, NUMBER, Stamps, Task, has_content, play, task

BEGINNING = DATA.decode()


async def stream(client: httpx.AsyncClient, work: Task, deadline_ns: int, stamps: Stamps) -> None:
    while True:
        sent_ns = time.monotonic_ns()
        if sent_ns >= deadline_ns:
            return
        async with client.stream("POST", f"{work.url}/v1/completions", json=work.fields) as response:
            seen = stamps.of(int(response.headers[NUMBER]), sent_ns)
            async for line in response.aiter_lines():
                if line.startswith(BEGINNING):
                    at_ns = time.monotonic_ns()
                    if has_content(line[len(BEGINNING) - 1 :].encode()):
                        seen.append(at_ns)


async def run(work: Task) -> None:
    stamps = Stamps()
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(limits=limits, timeout=None) as client:  # noqa: S113 - a stream may last
        deadline_ns = work.deadline_ns()
        await play((stream(client, work, deadline_ns, stamps) for _ in range(work.streams)), work, stamps)


if __name__ == "__main__":
    asyncio.run(run(task()))
