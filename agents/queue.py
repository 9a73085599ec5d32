"""The queue port: carries work, reviews and replies. It may lose and repeat; redispatch and repeated commands heal
that.

`MemoryQueue` carries them within one process. A queue between processes and one on topics come with their hosts.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from dagbok.events.envelope import Dispatch, Reply
from dagbok.events.run.values import AttemptKind

Lane = tuple[Literal["work", "verify"], str]
"""Kind of attempt and pool: `work.<pool>` and `review.<pool>` of the design."""


def lane_of(kind: AttemptKind, pool: str) -> Lane:
    """The lane that attempts of a kind and pool travel on."""
    return kind, pool


class Queue(Protocol):
    """Port of the queue. Order within a lane is kept where nothing is lost or repeated; nothing else is promised."""

    def put(self, lane: Lane, dispatches: Sequence[Dispatch]) -> None:
        """Offer attempts to whoever serves the lane."""
        ...

    async def take(self, lane: Lane) -> Sequence[Dispatch]:
        """All that is there for one taker, at least one; waits for it."""
        ...

    def reply(self, address: str, replies: Sequence[Reply]) -> None:
        """Send to an address; an address nobody listens on swallows it."""
        ...

    def listen(self, address: str, listener: Callable[[Sequence[Reply]], None]) -> None:
        """Have the replies to an address; the last listener wins."""
        ...

    def forget(self, address: str) -> None:
        """No longer listen on an address."""
        ...


class MemoryQueue:
    """The queue of one process: lists and functions."""

    def __init__(self) -> None:
        self._lanes: dict[Lane, deque[Dispatch]] = {}
        self._filled: dict[Lane, asyncio.Event] = {}
        self._listeners: dict[str, Callable[[Sequence[Reply]], None]] = {}

    def put(self, lane: Lane, dispatches: Sequence[Dispatch]) -> None:
        self._lanes.setdefault(lane, deque()).extend(dispatches)
        self._filled.setdefault(lane, asyncio.Event()).set()

    async def take(self, lane: Lane) -> Sequence[Dispatch]:
        filled = self._filled.setdefault(lane, asyncio.Event())
        waiting = self._lanes.setdefault(lane, deque())
        while not waiting:  # of several takers the first has it all
            filled.clear()
            await filled.wait()
        taken = tuple(waiting)
        waiting.clear()
        return taken

    def reply(self, address: str, replies: Sequence[Reply]) -> None:
        listener = self._listeners.get(address)
        if listener is not None:
            listener(replies)

    def listen(self, address: str, listener: Callable[[Sequence[Reply]], None]) -> None:
        self._listeners[address] = listener

    def forget(self, address: str) -> None:
        self._listeners.pop(address, None)
