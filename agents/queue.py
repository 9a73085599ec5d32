"""The queue port: carries work, reviews, hints and replies. It may lose and repeat; redispatch and repeated commands
heal that.

`MemoryQueue` carries them within one process. A queue between processes and one on topics come with their hosts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from dagbok.events.envelope import CancelHint, Dispatch, Reply
from dagbok.events.run.values import AttemptKind

Lane = tuple[Literal["work", "verify"], str]
"""Kind of attempt and pool: `work.<pool>` and `review.<pool>` of the design."""


Listener = Callable[[Sequence[Reply]], None]


def lane_of(kind: AttemptKind, pool: str) -> Lane:
    """The lane that attempts of a kind and pool travel on."""
    return kind, pool


def lane_address(lane: Lane) -> str:
    """Where hints to everybody who serves the lane go: each of them listens there."""
    return "lane/" + "/".join(lane)


class Queue(Protocol):
    """Port of the queue. Order within a lane is kept where nothing is lost or repeated; nothing else is promised."""

    def put(self, lane: Lane, dispatches: Sequence[Dispatch]) -> None:
        """Offer attempts to whoever serves the lane. One that waits there already does not wait twice."""
        ...

    async def take(self, lane: Lane) -> Sequence[Dispatch]:
        """All that is there for one taker, at least one; waits for it."""
        ...

    def hint(self, lane: Lane, hints: Sequence[CancelHint]) -> None:
        """These attempts are closed: nobody takes them any more, and who took them hears of it at `lane_address`."""
        ...

    def reply(self, address: str, replies: Sequence[Reply]) -> None:
        """Send to everybody who listens on an address; one that nobody listens on swallows it."""
        ...

    def listen(self, address: str, listener: Listener) -> None:
        """Have the replies to an address, beside whoever listens there already."""
        ...

    def forget(self, address: str, listener: Listener) -> None:
        """No longer listen on an address."""
        ...


class MemoryQueue:
    """The queue of one process: dicts and functions. It keeps each attempt once, so a pool that nobody serves takes no
    more memory than it has open attempts."""

    def __init__(self) -> None:
        self._waiting: dict[Lane, dict[tuple[str, str, int], Dispatch]] = {}
        self._filled: dict[Lane, asyncio.Event] = {}
        self._listeners: dict[str, list[Listener]] = {}

    def put(self, lane: Lane, dispatches: Sequence[Dispatch]) -> None:
        waiting = self._waiting.setdefault(lane, {})
        for item in dispatches:
            waiting[item.run, item.task, item.epoch] = item
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
                waiting.pop((hint.run, hint.task, hint.epoch), None)
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
