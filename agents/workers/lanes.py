"""Runs the attempts of one key, a bounded number at once, without a barrier between them; and what the lanes of a
process tell a queue that several processes share."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence

from dagbok.agents.queue.port import AttemptKey, attempt_of
from dagbok.agents.workers.definitions import Registry
from dagbok.events.envelope import Dispatch
from dagbok.events.run.values import AttemptKind


class KeyLane:
    """Attempts wait here for one of `concurrency` places. A call that never really waits takes no task of its own: a
    further runner is started only when the loop turns, that is, when all present ones are waiting for something.
    `freed` is called after each attempt."""

    def __init__(
        self,
        concurrency: int,
        run: Callable[[Dispatch], Awaitable[None]],
        freed: Callable[[Dispatch], None] | None = None,
    ) -> None:
        self._concurrency, self._run, self._freed = concurrency, run, freed
        self._waiting: OrderedDict[AttemptKey, Dispatch] = OrderedDict()
        self._runners: set[asyncio.Task[None]] = set()
        self._turn: asyncio.Handle | None = None
        self._running = 0
        self._closed = False

    @property
    def places(self) -> int:
        """How many more attempts it could begin at once; below zero when more wait than can begin."""
        return self._concurrency - self._running - len(self._waiting)

    def put(self, dispatch: Dispatch) -> None:
        """Run it as soon as there is a place. One that waits already waits on in its place."""
        self._waiting[attempt_of(dispatch)] = dispatch
        self._ask_turn()

    def drop(self, key: AttemptKey) -> Dispatch | None:
        """Nobody wants it any more: if it still waits, it does not run, and is returned."""
        return self._waiting.pop(key, None)

    def give_back(self, pool: str) -> Sequence[Dispatch]:
        """What waits of a pool: now it waits here no more."""
        back = [dispatch for dispatch in self._waiting.values() if dispatch.pool == pool]
        for dispatch in back:
            del self._waiting[attempt_of(dispatch)]
        return back

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
            dispatch = self._waiting.popitem(last=False)[1]
            self._running += 1
            try:
                await self._run(dispatch)
            finally:
                self._running -= 1
                if self._freed is not None:
                    self._freed(dispatch)
            if self._waiting:
                self._ask_turn()


class PoolTaker:
    """What a process can begin of one kind in one pool. The keys are served in every pool, so their places are shared
    between the pools."""

    def __init__(
        self, kind: AttemptKind, pool: str, registry: Registry, lanes: Mapping[tuple[AttemptKind, str], KeyLane]
    ) -> None:
        self._kind, self._pool, self._registry, self._lanes = kind, pool, registry, lanes

    def places(self) -> Mapping[str, int]:
        """By key, how many more attempts could begin at once."""
        served = self._registry.workers if self._kind == "work" else self._registry.verifiers
        return {key: self._places(key, definition.concurrency) for key, definition in served.items()}

    def give_back(self) -> Sequence[Dispatch]:
        """What was taken and has not begun."""
        lanes = [lane for (kind, _), lane in self._lanes.items() if kind == self._kind]
        return [dispatch for lane in lanes for dispatch in lane.give_back(self._pool)]

    def _places(self, key: str, concurrency: int) -> int:
        lane = self._lanes.get((self._kind, key))
        return concurrency if lane is None else lane.places
