"""The queue behind a bad network: dispatches, hints and replies are lost, doubled, late and out of order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from dagbok.agents.queue import Lane, Listener, attempt_of, lane_address
from dagbok.events.envelope import Answer, CancelHint, Dispatch, Reply
from dagbok.testing.simulation.loop import Place
from dagbok.testing.simulation.network import Network


class Ear(NamedTuple):
    """Somebody who listens on an address, in a simulated process."""

    place: Place
    listener: Listener


class Exchange:
    """What all ends share. `sent` and `answers`: everything that left an owner."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._loop = network.loop
        self._waiting: dict[Lane, list[Dispatch]] = {}
        self._filled: dict[Lane, asyncio.Event] = {}
        self._ears: dict[str, list[Ear]] = {}
        self.sent: list[Dispatch] = []
        self.answers: list[Answer] = []

    def put(self, lane: Lane, dispatches: Sequence[Dispatch]) -> None:
        """They arrive later, if at all."""
        self.sent += dispatches
        for dispatch in dispatches:
            for delay_s in self._ways("dispatch"):
                self._later(delay_s, partial(self._arrive, lane, dispatch))

    async def take(self, lane: Lane) -> Sequence[Dispatch]:
        """Some of what waits, in any order."""
        filled = self._filled.setdefault(lane, asyncio.Event())
        while not (waiting := self._waiting.get(lane)):
            filled.clear()
            await filled.wait()
        random = self._network.random
        random.shuffle(waiting)
        size = 1 + int(len(waiting) * random.random())
        taken, waiting[:] = waiting[:size], waiting[size:]
        return taken

    def hint(self, lane: Lane, hints: Sequence[CancelHint]) -> None:
        """Nobody needs to take these any more."""
        gone = {attempt_of(hint) for hint in hints}
        if (waiting := self._waiting.get(lane)) is not None:
            waiting[:] = [dispatch for dispatch in waiting if attempt_of(dispatch) not in gone]
        self.reply(lane_address(lane), hints)

    def reply(self, address: str, replies: Sequence[Reply]) -> None:
        """They arrive later, if at all, at whoever listens then."""
        self.answers += [reply for reply in replies if isinstance(reply, Answer)]
        for delay_s in self._ways("reply"):
            self._later(delay_s, lambda: self._deliver(address, replies))

    def listen(self, place: Place, address: str, listener: Listener) -> None:
        """Have what comes to an address."""
        self._ears.setdefault(address, []).append(Ear(place, listener))

    def forget(self, place: Place, address: str, listener: Listener) -> None:
        """No longer."""
        ears = self._ears.get(address, [])
        if (ear := Ear(place, listener)) in ears:
            ears.remove(ear)

    def _ways(self, what: str) -> Sequence[float]:
        """After how many seconds it arrives: once, twice or never."""
        network = self._network
        match network.ledger.strikes(f"{what} lost", f"{what} late", f"{what} doubled", weight=0.7):
            case None:
                return (network.delay_s(),)
            case fate if fate.endswith("lost"):
                return ()
            case fate if fate.endswith("late"):
                return (15 * network.random.random() ** 2,)
            case _:
                return (network.delay_s(), 10 * network.random.random() ** 2)

    def _arrive(self, lane: Lane, dispatch: Dispatch) -> None:
        self._waiting.setdefault(lane, []).append(dispatch)
        if (filled := self._filled.get(lane)) is not None:
            filled.set()

    def _deliver(self, address: str, replies: Sequence[Reply]) -> None:
        for place, listener in tuple(self._ears.get(address, ())):
            self._loop.call_soon(listener, replies, context=place.context.copy())

    def _later(self, delay_s: float, action: Callable[[], None]) -> None:
        self._loop.call_later(delay_s, action, context=self._loop.outside.context)


class QueueEnd:
    """The queue as one simulated process sees it."""

    def __init__(self, exchange: Exchange, place: Place) -> None:
        self._exchange, self._place = exchange, place

    def put(self, lane: Lane, dispatches: Sequence[Dispatch]) -> None:
        self._exchange.put(lane, dispatches)

    async def take(self, lane: Lane) -> Sequence[Dispatch]:
        return await self._exchange.take(lane)

    def hint(self, lane: Lane, hints: Sequence[CancelHint]) -> None:
        self._exchange.hint(lane, hints)

    def reply(self, address: str, replies: Sequence[Reply]) -> None:
        self._exchange.reply(address, replies)

    def listen(self, address: str, listener: Listener) -> None:
        self._exchange.listen(self._place, address, listener)

    def forget(self, address: str, listener: Listener) -> None:
        self._exchange.forget(self._place, address, listener)
