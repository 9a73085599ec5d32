"""The queue of one process."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

from dagbok.agents.queue.port import AttemptKey, Lane, Listener, attempt_of, lane_address
from dagbok.events.envelope import CancelHint, Dispatch, Reply


class MemoryQueue:
    """Dicts and functions. It keeps each attempt once, so a pool that nobody serves takes no more memory than it has
    open attempts."""

    def __init__(self) -> None:
        self._waiting: dict[Lane, dict[AttemptKey, Dispatch]] = {}
        self._filled: dict[Lane, asyncio.Event] = {}
        self._listeners: dict[str, list[Listener]] = {}

    def put(self, lane: Lane, dispatches: Sequence[Dispatch]) -> None:
        waiting = self._waiting.setdefault(lane, {})
        for item in dispatches:
            waiting[attempt_of(item)] = item
        if waiting and (filled := self._filled.get(lane)) is not None:
            filled.set()

    async def take(self, lane: Lane) -> Sequence[Dispatch]:
        filled = self._filled.setdefault(lane, asyncio.Event())
        while not (taken := self._waiting.pop(lane, None)):  # of several takers the first has it all
            filled.clear()
            await filled.wait()
        return tuple(taken.values())

    def hint(self, lane: Lane, hints: Sequence[CancelHint]) -> None:
        waiting = self._waiting.get(lane)
        if waiting is not None:
            for hint in hints:
                waiting.pop(attempt_of(hint), None)
            if not waiting:
                del self._waiting[lane]
        self.reply(lane_address(lane), hints)

    def reply(self, address: str, replies: Sequence[Reply]) -> None:
        for listener in tuple(self._listeners.get(address, ())):
            listener(replies)

    def listen(self, address: str, listener: Listener) -> None:
        self._listeners.setdefault(address, []).append(listener)

    def forget(self, address: str, listener: Listener) -> None:
        listeners = self._listeners.get(address, [])
        if listener in listeners:
            listeners.remove(listener)
        if not listeners:
            self._listeners.pop(address, None)

    @property
    def addresses(self) -> Collection[str]:
        """Where somebody listens."""
        return self._listeners.keys()

    def waiting(self, lane: Lane) -> Collection[Dispatch]:
        """What has not been taken yet."""
        return self._waiting.get(lane, {}).values()

    def take_back(self, lane: Lane) -> Sequence[Dispatch]:
        """What has not been taken yet: now it waits here no more."""
        return tuple(self._waiting.pop(lane, {}).values())
