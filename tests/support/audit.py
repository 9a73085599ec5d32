"""What must hold of every log, however it came about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from dagbok.events.body import decode_body
from dagbok.events.commit import Seal
from dagbok.events.log.port import COMMANDS, Log
from dagbok.events.log.sqlite import SqliteLog
from dagbok.events.rule import GENESIS
from dagbok.events.run import events as e
from dagbok.events.run.events import Event, TaskVerified, VerdictRecorded
from dagbok.projections.projector import Projector
from dagbok.projections.reading import read_effective
from dagbok.projections.store import Tables
from tests.support.projecting import dump, project

ENDS = (
    e.CandidateSubmitted,
    e.DecompositionProposed,
    e.VerdictRecorded,
    e.AttemptFailed,
    e.AttemptLost,
    e.AttemptReleased,
    e.AttemptClosed,
)
"""An attempt ends with one of them. (Some decompositions end theirs without, when the structure is their judge.)"""


async def effective_commits(log: Log, partition: int = 0) -> list[tuple[Seal, Sequence[Event]]]:
    """Every commit that counts, from genesis."""
    position, found = GENESIS, list[tuple[Seal, Sequence[Event]]]()
    while True:
        position, commits = await read_effective(log, partition, position, 1_000)
        if not commits and position.next_offset == (await log.bounds("events", partition)).end:
            return found
        for commit in commits:
            found.append((commit.seal, decode_body(commit.stored_body, commit.seal.codec, commit.seal.raw_size)))


async def effective_events(log: Log, partition: int = 0) -> list[tuple[int, Event]]:
    """Every event that counts, with the command offset of its commit."""
    commits = await effective_commits(log, partition)
    return [(seal.command_offset, event) for seal, events in commits for event in events]


async def check_decided(log: Log, partition: int = 0) -> None:
    """Every command that was decided was decided once, none was left out, no task passed twice, and no attempt ended
    twice or after another one of its task was opened."""
    commits = await effective_commits(log, partition)
    offsets = [offset for seal, told in commits for offset in _decided(seal, told)]
    assert offsets == list(range(len(offsets)))
    assert (await log.bounds(COMMANDS, partition)).end >= len(offsets)
    events = [(seal.stream or "", event) for seal, told in commits for event in told]
    passes = Counter(
        (stream, event.task)
        for stream, event in events
        if isinstance(event, VerdictRecorded) and (event.report.kind, event.report.verdict) == ("candidate", "pass")
    )
    published = Counter((stream, event.task) for stream, event in events if isinstance(event, TaskVerified))
    assert max(passes.values(), default=0) <= 1
    assert passes == published
    check_attempts(events)


def _decided(seal: Seal, events: Sequence[Event]) -> range:
    """The offsets of the commands that a commit decides: of one, or of all that an operator accepted as lost."""
    first = events[0]
    start = first.from_offset if isinstance(first, e.CommandsLost) else seal.command_offset
    return range(start, seal.command_offset + 1)


def check_attempts(events: Sequence[tuple[str, Event]]) -> None:
    """Of events with their streams, in order: epochs grow, and what ends an attempt comes once and is of the newest."""
    newest: dict[tuple[str, str], int] = {}
    ended: set[tuple[str, str, int]] = set()
    for stream, event in events:
        if isinstance(event, e.AttemptOpened):
            assert event.epoch > newest.get((stream, event.task), 0), event
            newest[stream, event.task] = event.epoch
        elif isinstance(event, ENDS):
            assert event.epoch == newest[stream, event.task], event
            assert (stream, event.task, event.epoch) not in ended, event
            ended.add((stream, event.task, event.epoch))


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
