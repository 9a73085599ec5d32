"""Whether the log of a data folder is the one that everything beside it was built from.

Tables and snapshots name the commit that they stand behind. A log that does not have it is an older copy, or another
one: to go on with it would decide anew, without a word, what is decided and may have had effects.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from dagbok.events.commit import value_hash
from dagbok.events.errors import DagbokError, LogLost
from dagbok.events.log.port import EVENTS
from dagbok.events.log.sqlite_reader import Reader
from dagbok.events.log.sqlite_schema import FAILURES
from dagbok.projections.snapshots.manifest import decode_manifest
from dagbok.projections.snapshots.slots import FileSlots

PATIENCE_S: Final = 5.0
SMALLEST_DATABASE: Final = 512
"""Bytes of the smallest page: SQLite takes a shorter file for an empty one, and begins anew in it."""
_POSITIONS: Final = "SELECT next_offset, head_hash, head_offset FROM positions WHERE partition = ?"


class Head(NamedTuple):
    """What something that was built from the log says of it: it ended at `end` or later, and had a commit with this
    hash at this offset (none: -1)."""

    where: Path
    end: int
    hash: str
    offset: int


def check_log(log: Path, tables: Path, queue: Path, snapshots: Path, artifacts: Path, partition: int) -> None:
    """Raise `LogLost` when the log is gone, or is not the one that the tables and snapshots were built from (blocking).

    What cannot be read here says nothing here: whoever needs it will complain.
    """
    # In this order: the log is made before anything that comes of it, and only grows.
    heads = [*_of_snapshots(snapshots, partition), *_of_tables(tables, partition)]
    _check_is_there(log, _remains(log, (tables, queue), artifacts, heads))
    if _has_content(log, SMALLEST_DATABASE):
        _check_heads(log, heads)


def check_not_lost(log: Path, tables: Path, queue: Path, snapshots: Path, artifacts: Path, partition: int) -> None:
    """Raise `LogLost` when the log is gone and something that came of it is not, for whoever only reads (blocking).
    Says nothing of a log that is there."""
    if not _has_content(log, SMALLEST_DATABASE):
        _check_is_there(log, _remains(log, (tables, queue), artifacts, list(_of_snapshots(snapshots, partition))))


def _remains(log: Path, databases: Sequence[Path], artifacts: Path, heads: Sequence[Head]) -> set[str]:
    found = {path.name for path in (*databases, log.with_name(log.name + "-wal")) if _has_content(path)}
    found |= {head.where.name for head in heads if head.where not in databases}
    return found | ({artifacts.name} if artifacts.is_dir() and any(artifacts.iterdir()) else set())


def _check_is_there(log: Path, remains: set[str]) -> None:
    if remains and not _has_content(log, SMALLEST_DATABASE):
        raise LogLost(
            f"{log} is gone, but what came of it is there ({', '.join(sorted(remains))})",
            advice=f"bring it back from a backup; to begin anew on purpose, move {log.parent} away",
        )


def _check_heads(log: Path, heads: list[Head]) -> None:
    try:
        with closing(Reader(log, PATIENCE_S)) as reader:
            end = reader.bounds(EVENTS).end
            for head in heads:
                if end < head.end:
                    raise _not_the_log(f"{log} ends at {end}, but {head.where.name} was built from {head.end} records")
                if head.offset >= 0 and value_hash(reader.value(EVENTS, head.offset)) != head.hash:
                    raise _not_the_log(f"{log} is not the log that {head.where.name} was built from")
    except LogLost:
        raise
    except (DagbokError, *FAILURES):
        return


def _not_the_log(said: str) -> LogLost:
    return LogLost(
        said,
        advice="bring the newest log back from a backup; to go on with this one on purpose, remove tables.db and "
        "snapshots/ first",
    )


def _of_snapshots(folder: Path, partition: int) -> Iterator[Head]:
    for data in FileSlots(folder, partition).read():
        manifest = decode_manifest(data)
        if manifest is not None and manifest.partition == partition:
            stands = manifest.position
            yield Head(folder, stands.next_offset, stands.head_hash, stands.head_offset)


def _of_tables(path: Path, partition: int) -> Iterator[Head]:
    if not _has_content(path):
        return
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=rw", uri=True, timeout=PATIENCE_S)) as db:
            rows = db.execute(_POSITIONS, (partition,)).fetchall()
    except sqlite3.Error:
        return
    for end, hash, offset in rows:
        if isinstance(end, int) and isinstance(hash, str) and isinstance(offset, int):
            yield Head(path, end, hash, offset)


def _has_content(path: Path, least_bytes: int = 1) -> bool:
    try:
        return path.stat().st_size >= least_bytes
    except OSError:
        return False
