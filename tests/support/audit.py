"""What must hold of every log, however it came about."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from dagbok.events.body import decode_body
from dagbok.events.log.port import COMMANDS, Log
from dagbok.events.log.sqlite import SqliteLog
from dagbok.events.rule import GENESIS
from dagbok.events.run.events import Event, TaskVerified, VerdictRecorded
from dagbok.projections.projector import Projector
from dagbok.projections.reading import read_effective
from dagbok.projections.store import Tables
from tests.support.projecting import dump, project


async def effective_events(log: Log, partition: int = 0) -> list[tuple[int, Event]]:
    """Every event that counts, with the command offset of its commit."""
    position, events = GENESIS, list[tuple[int, Event]]()
    while True:
        position, commits = await read_effective(log, partition, position, 1_000)
        if not commits and position.next_offset == (await log.bounds("events", partition)).end:
            return events
        for commit in commits:
            body = decode_body(commit.stored_body, commit.seal.codec, commit.seal.raw_size)
            events += [(commit.seal.command_offset, event) for event in body]


async def check_decided(log: Log, partition: int = 0) -> None:
    """Every command that was decided was decided once, none was left out, and no task passed twice."""
    events = await effective_events(log, partition)
    offsets = list(dict.fromkeys(offset for offset, _ in events))
    assert offsets == list(range(len(offsets)))
    assert (await log.bounds(COMMANDS, partition)).end >= len(offsets)
    passes = Counter(
        event.task
        for _, event in events
        if isinstance(event, VerdictRecorded) and (event.report.kind, event.report.verdict) == ("candidate", "pass")
    )
    published = Counter(event.task for _, event in events if isinstance(event, TaskVerified))
    assert max(passes.values(), default=0) <= 1
    assert passes == published


async def verified_tasks(folder: Path) -> set[str]:
    """The tasks that the log of a data folder says are verified."""
    log = SqliteLog.open(folder / "log.db")
    try:
        return {event.task for _, event in await effective_events(log) if isinstance(event, TaskVerified)}
    finally:
        await log.close()


async def check_folder(folder: Path, scratch: Path) -> None:
    """The log of a data folder is right, and its tables are those that a rebuild from zero gives."""
    log = SqliteLog.open(folder / "log.db")
    tables = Tables.open(folder / "tables.db")
    try:
        await check_decided(log)
        await Projector(log, tables).catch_up()
        assert dump(tables) == await project(log, scratch / "rebuilt.db")
    finally:
        tables.close()
        await log.close()
