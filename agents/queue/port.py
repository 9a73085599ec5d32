"""The queue port: carries work, reviews, hints and replies. It may lose and repeat; redispatch and repeated commands
heal that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol, runtime_checkable

from dagbok.events.envelope import CancelHint, Dispatch, Reply
from dagbok.events.run.values import AttemptKind

Lane = tuple[AttemptKind, str]
"""Kind of attempt and pool: `work.<pool>` and `review.<pool>` of the design."""

KINDS: Final[tuple[AttemptKind, ...]] = ("work", "verify")

AttemptKey = tuple[str, str, int]
"""Run, task, epoch."""

Listener = Callable[[Sequence[Reply]], None]


def lane_of(kind: AttemptKind, pool: str) -> Lane:
    """The lane that attempts of a kind and pool travel on."""
    return kind, pool


def lane_address(lane: Lane) -> str:
    """Where hints to everybody who serves the lane go: each of them listens there."""
    return "lane/" + "/".join(lane)


def attempt_of(item: Dispatch | CancelHint) -> AttemptKey:
    """What names the attempt that a message is about."""
    return item.run, item.task, item.epoch


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


class Taker(Protocol):
    """Who takes from a lane, as a queue between processes sees it."""

    def places(self) -> Mapping[str, int]:
        """By key that it serves, how many more attempts it could begin at once."""
        ...

    def give_back(self) -> Sequence[Dispatch]:
        """Attempts that were handed to it and that it has not begun; it forgets them."""
        ...


@runtime_checkable
class SharedQueue(Queue, Protocol):
    """A queue whose lanes several processes serve: it hands each of them what it has a free place for, the one with
    the most free places first. So it has to know who serves a lane here. While nobody else does, `take` gives all
    that is there."""

    def serve(self, lane: Lane, taker: Taker) -> None:
        """From now on this process serves the lane."""
        ...

    def freed(self, lane: Lane) -> None:
        """The taker of the lane has more free places than before. Cheap; call it after each attempt."""
        ...

    def settled(self, lane: Lane, key: AttemptKey) -> None:
        """The log has the first word of an attempt that was taken, or this process is done with it: the queue need not
        hand it to anybody again. What is not settled when its taker dies may be handed to another."""
        ...

    def leave(self, lane: Lane) -> None:
        """This process serves the lane no more; what waits there for it goes to others."""
        ...
