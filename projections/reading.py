"""The one way to read `events`: effective commits behind a position (`docs/design/architecture.md`, section 3.2).

Owner, projector, snapshots and tests all read through this file; the rule itself stands in `events/rule.py`.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from dagbok.events.commit import Commit, value_hash
from dagbok.events.errors import FormatTooNew, LogLost
from dagbok.events.log.port import EVENTS, Log
from dagbok.events.rule import Position, follow
from dagbok.events.traceparent import TRACEPARENT


class Tally(msgspec.Struct):
    """What a reader has met: effective commits, and void records, which everybody skips."""

    effective: int = 0
    void: int = 0


async def read_effective(
    log: Log, partition: int, position: Position, limit: int, tally: Tally | None = None
) -> tuple[Position, list[Commit]]:
    """Read up to `limit` records of `events` behind `position`: the position behind them, and the effective commits.

    The same position and no commit: the reader stands at the end. A new position and no commit: all of them were void.
    Counts into `tally`. Raises `LogLost` when the log starts beyond the position or ends below it, and `FormatTooNew`
    when the next commit has a newer seal; what stands before that one is returned first, by a read of its own.
    """
    records = await log.read(EVENTS, partition, position.next_offset, limit)
    if not records or records[0].offset != position.next_offset:
        await _check_bounds(log, partition, position)
    start, commits, void = position, list[Commit](), 0
    for record in records:
        try:
            position, commit = follow(position, partition, record.offset, record.value)
        except FormatTooNew:
            if position == start:
                raise
            break
        if commit is None:
            void += 1
        else:
            traceparent = record.headers.get(TRACEPARENT)
            commits.append(commit if traceparent is None else replace(commit, traceparent=traceparent))
    if tally is not None:
        tally.effective += len(commits)
        tally.void += void
    return position, commits


async def check_head(log: Log, partition: int, position: Position) -> None:
    """Make sure that `position` is one of this log, and not of another one that happens to be longer.

    Raises `LogLost` when the commit that it names as its head is not there. Worth a call whenever a position comes from
    a file: behind a foreign one every commit would be void, without a word.
    """
    if position.head_offset < 0:
        return
    records = await log.read(EVENTS, partition, position.head_offset, 1)
    if not records or records[0].offset != position.head_offset or value_hash(records[0].value) != position.head_hash:
        raise LogLost(f"events[{partition}] has another commit at offset {position.head_offset} than was read before")


async def check_stand(log: Log, partition: int, position: Position) -> None:
    """`check_head`, and that the log has not lost what was read behind the head. Raises `LogLost`."""
    end = (await log.bounds(EVENTS, partition)).end
    if end < position.next_offset:
        raise LogLost(f"events[{partition}] ends at {end}, but was read up to {position.next_offset}")
    await check_head(log, partition, position)


async def _check_bounds(log: Log, partition: int, position: Position) -> None:
    bounds = await log.bounds(EVENTS, partition)
    if bounds.start > position.next_offset:
        raise LogLost(f"events[{partition}] starts at {bounds.start}, the reader needs {position.next_offset}")
    if bounds.end < position.next_offset:
        raise LogLost(f"events[{partition}] ends at {bounds.end}, but was read up to {position.next_offset}")
