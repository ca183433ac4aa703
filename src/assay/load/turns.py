"""So many sends in each turn of the event loop, first come first served."""

from __future__ import annotations

import asyncio
from collections import deque

SENDS_IN_A_TURN = 16
"""Each costs half a millisecond: connecting, sending, making the next prompt."""


class Turns:
    """Shares out the turns of the loop.

    Streams that end together would else all connect in one turn, and what the others receive meanwhile would wait.
    """

    def __init__(self) -> None:
        self._is_open = False
        self._left = SENDS_IN_A_TURN
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def mine(self) -> None:
        """Returns in a turn that has room for one more."""
        loop = asyncio.get_running_loop()
        if not self._is_open:
            self._is_open = True
            loop.call_soon(self._begin)
        if self._left == 0:
            turn = loop.create_future()
            self._waiting.append(turn)
            await turn
        else:
            self._left -= 1

    def _begin(self) -> None:
        self._left = SENDS_IN_A_TURN
        while self._waiting and self._left:
            turn = self._waiting.popleft()
            if not turn.done():  # a drain cancels those who wait
                turn.set_result(None)
                self._left -= 1
        self._is_open = self._left < SENDS_IN_A_TURN
        if self._is_open:
            asyncio.get_running_loop().call_soon(self._begin)
