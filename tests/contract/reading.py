"""How the contract tests write and look at a log."""

from __future__ import annotations

from collections.abc import Iterable

from dagbok.events.log.port import Log, Record, StoredRecord, Topic


def records(*values: bytes, key: str = "run:a") -> list[Record]:
    return [Record(key, value) for value in values]


def values_of(stored: Iterable[StoredRecord]) -> list[bytes]:
    return [record.value for record in stored]


async def read_all(log: Log, topic: Topic, partition: int, start: int = 0, limit: int = 100) -> list[StoredRecord]:
    """Read on from `start` until a read is empty, as every reader does."""
    found: list[StoredRecord] = []
    while page := await log.read(topic, partition, start, limit):
        found.extend(page)
        start = page[-1].offset + 1
    return found
