"""Feeds views with the commits of one partition, batch by batch: rows and positions in one transaction.

A batch counts only if every view still stands where the batch was read; so any number of feeds may work on the same
tables at once, and each event counts exactly once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import msgspec
import sqlalchemy as sa

from dagbok.events.commit import Commit
from dagbok.events.errors import LogLost
from dagbok.events.log.port import Log
from dagbok.events.rule import GENESIS, Position
from dagbok.projections.reading import Tally, check_head, read_effective
from dagbok.projections.store import Tables
from dagbok.projections.tables import positions
from dagbok.projections.tables.session import Session
from dagbok.projections.views.view import View, tell

T = TypeVar("T")


class Progress(msgspec.Struct):
    """What a feed has done since it began: commits and events taken in, void records skipped, and batches that another
    feed was faster with (`lost`)."""

    commits: int = 0
    events: int = 0
    void: int = 0
    lost: int = 0

    def __add__(self, other: Progress) -> Progress:
        return Progress(
            self.commits + other.commits, self.events + other.events, self.void + other.void, self.lost + other.lost
        )


class Stand(msgspec.Struct):
    """A version of a view, and where it stands."""

    view: View
    version: int
    live: bool
    position: Position


class Replaced(Exception):
    """The version that is being built is not there any more: another one took its place."""


class Feed:
    """Feeds the live versions of all views, or, with `building`, the named versions that are being built."""

    def __init__(
        self,
        log: Log,
        tables: Tables,
        partition: int,
        batch_records: int,
        building: Mapping[str, int] | None = None,
    ) -> None:
        self._log = log
        self._tables = tables
        self._partition = partition
        self._batch_records = batch_records
        self._building = building
        self._stands: list[Stand] | None = None
        self.progress = Progress()

    @property
    def position(self) -> Position:
        """The position that all views have reached."""
        stands = self._stands
        return min([stand.position for stand in stands], key=_offset) if stands else GENESIS

    async def step(self) -> bool:
        """Take in one batch. False when there was none: the views stand at the end of the log.

        Raises `FormatTooNew`, with everything before the reason taken in, `LogLost`, `LogCorrupt` or `StorageFailed`.
        """
        if self._stands is None:
            self._stands = await self._load()
        group, rest = _slowest(self._stands)
        old, limit = group[0].position, self._batch_records
        if rest is not None:
            limit = min(limit, rest.next_offset - old.next_offset)
        tally = Tally()
        new, commits = await read_effective(self._log, self._partition, old, limit, tally)
        if rest is not None and new == old:
            raise LogLost(f"events[{self._partition}] ends before {rest.next_offset}, which was read before")
        if rest is not None and new.next_offset >= rest.next_offset:
            commits = [commit for commit in commits if commit.offset < rest.next_offset]
            new = rest
        if new == old:
            return False
        written = await _in_thread(lambda: self._write(group, old, new, commits, tally.void))
        if written is None:
            self.progress.lost += 1
            self._stands = None
        else:
            for stand in group:
                stand.position = written
        return True

    async def _load(self) -> list[Stand]:
        stands = await _in_thread(self._read_stands)
        for position in {stand.position.head_offset: stand.position for stand in stands}.values():
            await check_head(self._log, self._partition, position)
        return stands

    def _read_stands(self) -> list[Stand]:
        with self._tables.writing() as connection:
            chosen = self._building
            if chosen is None:
                chosen = {name: self._tables.live_version(connection, name) for name in self._tables.views}
            return [
                Stand(
                    view=self._tables.views[name],
                    version=version,
                    live=self._building is None,
                    position=self._position(connection, name, version),
                )
                for name, version in chosen.items()
            ]

    def _position(self, connection: sa.Connection, name: str, version: int) -> Position:
        found = positions.read_position(connection, name, version, self._partition)
        if found is not None:
            return found
        if self._building is not None:
            raise Replaced(name)
        positions.begin(connection, name, version, self._partition)
        return GENESIS

    def _write(
        self, group: Sequence[Stand], old: Position, new: Position, commits: Sequence[Commit], void: int
    ) -> Position | None:
        """The position behind what was written; None when another feed was faster, and nothing was written."""
        told = tell(commits)
        if len(told) < len(commits):  # an unknown event: up to it, and the next step halts
            last = told[-1].commit
            new, void = GENESIS.applied(last.offset, last.seal, last.hash), 0
        with self._tables.writing() as connection:
            for stand in group:
                name, version = stand.view.name, stand.version
                if not positions.advance(connection, name, version, self._partition, old, new, void):
                    connection.rollback()
                    return None
            for stand in group:
                tables = self._tables.tables_of(stand.view, stand.version, live=stand.live)
                stand.view.write(Session(connection, tables), told)
        self.progress.commits += len(told)
        self.progress.events += sum([len(item.events) for item in told])
        self.progress.void += void
        return new


def _slowest(stands: Sequence[Stand]) -> tuple[list[Stand], Position | None]:
    """The views that are furthest behind, which read together, and the position at which others join them."""
    first = min([stand.position.next_offset for stand in stands])
    group = [stand for stand in stands if stand.position.next_offset == first]
    ahead = [stand.position for stand in stands if stand.position.next_offset > first]
    return group, min(ahead, key=_offset) if ahead else None


def _offset(position: Position) -> int:
    return position.next_offset


async def _in_thread(work: Callable[[], T]) -> T:
    """Run what blocks. When the caller is cancelled, it ends first: nothing goes on behind anybody's back."""
    job = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(job)
    except asyncio.CancelledError:
        await asyncio.wait([job])
        if not job.cancelled():
            job.exception()  # has been seen
        raise
