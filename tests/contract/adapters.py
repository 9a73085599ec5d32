"""The adapters that the contract suite runs, each with what it can do. A new adapter is an entry in `ADAPTERS`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dagbok.events.log.clock import Clock
from dagbok.events.log.kafka import KafkaLog
from dagbok.events.log.memory import MemoryLog
from dagbok.events.log.port import Log, Record, Topic
from dagbok.events.log.sqlite import SqliteLog
from tests.servers.kafka_topics import create_log_topics, fresh_prefix, settings_of


class ManualClock:
    """A clock that stands until the test moves it, also back."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms


class UnrefusingLog(MemoryLog):
    """A memory log that, as Kafka, cannot refuse by `expect`: it reports where the records landed."""

    async def append(
        self, topic: Topic, partition: int, records: Sequence[Record], *, expect: int | None = None
    ) -> int:
        return await super().append(topic, partition, records)


@dataclass(frozen=True)
class Adapter:
    """One log under test. `open(folder, clock)` opens the log that belongs to the folder."""

    name: str
    open: Callable[[Path, Clock], Awaitable[Log]]
    refuses: bool
    """An append whose `expect` is wrong is refused; else it lands and says where."""
    durable: bool
    """The log of a folder can be opened again, and several times at once, with all its records."""
    takes_clock: bool
    """Append times come from the clock handed in; else from a server's own."""


async def _memory(folder: Path, clock: Clock) -> Log:
    return MemoryLog(partitions=3, clock=clock)


async def _unrefusing(folder: Path, clock: Clock) -> Log:
    return UnrefusingLog(partitions=2, clock=clock)


async def _sqlite(folder: Path, clock: Clock) -> Log:
    return SqliteLog.open(folder / "log.db", clock=clock)


async def _kafka(folder: Path, clock: Clock) -> Log:
    """The folder remembers which topics are its own."""
    remembered = folder / "prefix"
    if not remembered.exists():
        prefix = fresh_prefix()
        await create_log_topics(settings_of(prefix))
        remembered.write_text(prefix)
    return await KafkaLog.open(settings_of(remembered.read_text()))


ADAPTERS = (
    Adapter("memory", _memory, refuses=True, durable=False, takes_clock=True),
    Adapter("unrefusing", _unrefusing, refuses=False, durable=False, takes_clock=True),
    Adapter("sqlite", _sqlite, refuses=True, durable=True, takes_clock=True),
    Adapter("kafka", _kafka, refuses=False, durable=True, takes_clock=False),
)
