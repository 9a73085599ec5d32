"""The log behind a bad network: appends are lost, late, doubled, or land without anybody hearing of it.

Every simulated process has a `Connection` of its own to one `MemoryLog`. On a log that `refuses`, `expect` is checked
when an append lands, as SQLite does; on one that does not, the connection can only report where a batch landed, as
Kafka does. What was sent lands even if its sender is gone by then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextvars import Context
from random import Random
from typing import Final, TypeVar

from dagbok.events.errors import DagbokError, StorageFailed
from dagbok.events.log.memory import MemoryLog
from dagbok.events.log.port import COMMANDS, EVENTS, Bounds, Record, StoredRecord, Topic
from dagbok.testing.simulation.faults import Ledger
from dagbok.testing.simulation.loop import Place, SimulatedLoop

T = TypeVar("T")

EPOCH_MS: Final = 1_700_000_000_000
"""Log time when a simulation begins."""
PATIENCE_S: Final = 3.0
"""How long an append waits for its acknowledgement."""
LONGEST_FAULT_S: Final = 25.0
"""Whatever went wrong on the way has its effect within this."""

Saw = Callable[[Topic, StoredRecord], None]


class Network:
    """What all connections share: the log, its clock, and every command that ever landed (the owner deletes them)."""

    def __init__(self, loop: SimulatedLoop, random: Random, ledger: Ledger, *, refuses: bool) -> None:
        self.loop, self.random, self.ledger, self.refuses = loop, random, ledger, refuses
        self.skew_ms = 0
        self.log = MemoryLog(clock=self.clock_ms)
        self.commands: list[StoredRecord] = []
        self.saw: Saw = lambda topic, record: None

    def clock_ms(self) -> int:
        """The clock of the log, which may jump."""
        return EPOCH_MS + int(self.loop.time() * 1000) + self.skew_ms

    def delay_s(self) -> float:
        """One way, on a day like any other."""
        chance = self.random.random()
        return chance * 0.004 if chance < 0.9 else (chance - 0.9) * 2

    def land(self, topic: Topic, partition: int, records: Sequence[Record], expect: int | None) -> int:
        """Append at once. Raises `EndMoved` on a log that refuses."""
        log = self.log
        first = at_once(log.append(topic, partition, records, expect=expect if self.refuses else None))
        landed = at_once(log.read(topic, partition, first, len(records)))
        if topic == COMMANDS:
            self.commands += landed
        for record in landed:
            self.saw(topic, record)
        return first


class Connection:
    """The way of one process to the log. `drag_s`: added to everything that it reads."""

    def __init__(self, network: Network, place: Place, *, drag_s: float = 0.0) -> None:
        self._network, self._place, self._drag_s = network, place, drag_s
        self._loop = network.loop
        self._outside: Context = network.loop.outside.context

    @property
    def partitions(self) -> int:
        return self._network.log.partitions

    async def append(
        self, topic: Topic, partition: int, records: Sequence[Record], *, expect: int | None = None
    ) -> int:
        network = self._network
        ledger = network.ledger
        done: asyncio.Future[int] = self._loop.create_future()
        fate = None
        if topic == EVENTS and not network.refuses:
            fate = ledger.strikes("refused", "lost", "late", "unheard", "doubled", "offset unknown", "slow")
        elif topic == EVENTS:
            fate = ledger.strikes("refused", "lost", "unheard", "slow")
        else:
            fate = ledger.strikes("refused", "lost", "late", "unheard", "doubled", "slow")

        def land(answer: bool) -> None:
            try:
                landed: int | DagbokError = network.land(topic, partition, records, expect)
            except DagbokError as error:
                landed = error
            if answer:
                self._later(network.delay_s(), lambda: _settle(done, -1 if fate == "offset unknown" else landed))

        if fate == "refused":
            raise StorageFailed("the log is not there")
        way_s = network.delay_s()
        if fate in ("late", "slow"):
            way_s += PATIENCE_S * (fate == "late") + 20 * network.random.random() ** 2
        if fate != "lost":
            self._later(way_s, lambda: land(fate not in ("late", "unheard")))
        if fate == "doubled":
            self._later(way_s + 5 * network.random.random(), lambda: land(False))
        if fate in ("lost", "late", "unheard"):
            silence = TimeoutError("no acknowledgement came")
            self._later(PATIENCE_S, lambda: _settle(done, silence))
        return await done

    async def read(self, topic: Topic, partition: int, start: int, limit: int) -> Sequence[StoredRecord]:
        network = self._network
        await self._trip()
        if network.ledger.strikes("unreadable", weight=0.1):
            raise StorageFailed("the log is not there")
        if not network.ledger.calm and network.random.random() < 0.2:
            limit = min(limit, 1 + int(8 * network.random.random()))
        return await network.log.read(topic, partition, start, limit)

    async def bounds(self, topic: Topic, partition: int) -> Bounds:
        await self._trip()
        return await self._network.log.bounds(topic, partition)

    async def wait(self, topic: Topic, partition: int, offset: int, timeout_s: float | None = None) -> bool:
        return await self._network.log.wait(topic, partition, offset, timeout_s)

    async def delete_before(self, topic: Topic, partition: int, offset: int) -> None:
        await self._trip()
        await self._network.log.delete_before(topic, partition, offset)

    def value_at(self, topic: Topic, partition: int, offset: int) -> bytes:
        return self._network.log.value_at(topic, partition, offset)

    def read_now(self, topic: Topic, partition: int, start: int, limit: int) -> Sequence[StoredRecord]:
        return self._network.log.read_now(topic, partition, start, limit)

    async def close(self) -> None:
        """The log stays open for the others."""

    async def _trip(self) -> None:
        drag_s = self._drag_s * self._network.random.random() if self._drag_s else 0.0
        await asyncio.sleep(self._network.delay_s() + drag_s)

    def _later(self, delay_s: float, action: Callable[[], None]) -> None:
        self._loop.call_later(delay_s, action, context=self._outside)


def at_once(action: Coroutine[object, None, T]) -> T:
    """The result of something that never waits."""
    try:
        action.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    raise RuntimeError("it waits")


def _settle(done: asyncio.Future[int], result: int | Exception) -> None:
    if done.done():
        return
    if isinstance(result, Exception):
        done.set_exception(result)
    else:
        done.set_result(result)
