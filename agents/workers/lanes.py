"""Runs the attempts of one key, a bounded number at once, without a barrier between them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from dagbok.agents.workers.held import AttemptKey, key_of
from dagbok.events.envelope import Dispatch


class KeyLane:
    """Attempts wait here for one of `concurrency` places. A call that never really waits takes no task of its own: a
    further runner is started only when the loop turns, that is, when all present ones are waiting for something."""

    def __init__(self, concurrency: int, run: Callable[[Dispatch], Awaitable[None]]) -> None:
        self._concurrency, self._run = concurrency, run
        self._waiting: OrderedDict[AttemptKey, Dispatch] = OrderedDict()
        self._runners: set[asyncio.Task[None]] = set()
        self._turn: asyncio.Handle | None = None
        self._closed = False

    def put(self, dispatch: Dispatch) -> None:
        """Run it as soon as there is a place. One that waits already waits on in its place."""
        self._waiting[key_of(dispatch)] = dispatch
        self._ask_turn()

    def drop(self, key: AttemptKey) -> None:
        """Nobody wants it any more: if it still waits, it does not run."""
        self._waiting.pop(key, None)

    async def close(self) -> None:
        """Take nothing more, cancel what runs, and wait for it."""
        self._closed = True
        self._waiting.clear()
        for runner in self._runners:
            runner.cancel()
        await asyncio.gather(*self._runners, return_exceptions=True)

    def _ask_turn(self) -> None:
        if self._turn is None and not self._closed:
            self._turn = asyncio.get_running_loop().call_soon(self._start_runner)

    def _start_runner(self) -> None:
        self._turn = None
        if self._waiting and not self._closed and len(self._runners) < self._concurrency:
            runner = asyncio.get_running_loop().create_task(self._drain())
            self._runners.add(runner)
            runner.add_done_callback(self._runners.discard)

    async def _drain(self) -> None:
        self._ask_turn()
        while self._waiting:
            await self._run(self._waiting.popitem(last=False)[1])
            if self._waiting:
                self._ask_turn()
