"""Tasks that look after partitions: one for each, begun and ended without anybody waiting for it.

Whoever is told of a rebalance may not wait: until it has answered, its client sends no heartbeat, and the group expels
it. So what ends does so beside, however long it takes, and whoever holds its partition next waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

import structlog

logger = structlog.get_logger(__name__)

Hold = Callable[[int], Coroutine[object, object, None]]
"""Looks after one partition until it is cancelled. Its end, however it comes, is the end of the group here."""


class Holders:
    """Of one group. `failed` gets the error of the first holder that ends by itself."""

    def __init__(self, hold: Hold, name: str) -> None:
        self._hold, self._name = hold, name
        self._present: dict[int, asyncio.Task[None]] = {}
        self._ending: dict[int, set[asyncio.Task[None]]] = {}
        self._closed = False
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def keep(self, partitions: frozenset[int]) -> None:
        """Hold these and no others from now on; what is held already goes on. Nothing after `end`."""
        if self._closed:
            return
        for number in sorted(self._present.keys() - partitions):
            self._let_go(number)
        for number in sorted(partitions - self._present.keys()):
            before = frozenset(self._ending.get(number, ()))
            task = asyncio.create_task(self._held(number, before), name=f"{self._name}-{number}")
            self._present[number] = task
            task.add_done_callback(self._ended)

    def end(self) -> None:
        """Hold nothing any more, whatever is told later."""
        self._closed = True
        for number in sorted(self._present):
            self._let_go(number)

    async def ended(self) -> None:
        """Wait until nothing is held."""
        while tasks := [task for tasks in (self._ending.values()) for task in tasks]:
            await asyncio.wait(tasks)

    def _let_go(self, number: int) -> None:
        task = self._present.pop(number)
        ending = self._ending.setdefault(number, set())
        ending.add(task)
        task.add_done_callback(lambda done: self._gone(number, done))
        task.cancel()

    async def _held(self, number: int, before: frozenset[asyncio.Task[None]]) -> None:
        if before:
            await asyncio.wait(before)
        await self._hold(number)

    def _gone(self, number: int, task: asyncio.Task[None]) -> None:
        ending = self._ending[number]
        ending.discard(task)
        if not ending:
            del self._ending[number]
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.warning("group.ended_badly", holder=task.get_name(), error=str(error), exc_info=error)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or task not in self._present.values() or self.failed.done():
            return
        self.failed.set_exception(task.exception() or RuntimeError(f"{task.get_name()} ended by itself"))
