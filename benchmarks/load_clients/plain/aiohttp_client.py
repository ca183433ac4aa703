"""The usual aiohttp client: one session, one task for each stream, events parsed as their lines arrive."""

from __future__ import annotations

import asyncio
import time

import aiohttp
from common import DATA, NUMBER, Stamps, Task, has_content, play, task


async def stream(session: aiohttp.ClientSession, work: Task, deadline_ns: int, stamps: Stamps) -> None:
    while True:
        sent_ns = time.monotonic_ns()
        if sent_ns >= deadline_ns:
            return
        async with session.post(f"{work.url}/v1/completions", json=work.fields) as response:
            seen = stamps.of(int(response.headers[NUMBER]), sent_ns)
            async for line in response.content:
                if line.startswith(DATA):
                    at_ns = time.monotonic_ns()
                    if has_content(line[len(DATA) - 1 :]):
                        seen.append(at_ns)


async def run(work: Task) -> None:
    stamps = Stamps()
    endless = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=endless) as session:
        deadline_ns = work.deadline_ns()
        await play((stream(session, work, deadline_ns, stamps) for _ in range(work.streams)), work, stamps)


if __name__ == "__main__":
    asyncio.run(run(task()))
