"""What only the SQLite log does: group commit, one file, the locks and the failures of a disk."""

from __future__ import annotations

import asyncio
import resource
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from dagbok.events.errors import FolderBusy, StorageFailed
from dagbok.events.log import sqlite_waiters
from dagbok.events.log.port import COMMANDS, EVENTS
from dagbok.events.log.sqlite import SqliteLog
from dagbok.events.log.sqlite_schema import BUSY_TIMEOUT_S, connect
from tests.contract.reading import read_all, records, values_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.db"


@pytest.fixture
async def log(path: Path) -> AsyncIterator[SqliteLog]:
    log = SqliteLog.open(path)
    yield log
    await log.close()


def commits_in(wal: Path) -> int:
    """Number of transactions in a write-ahead log (https://sqlite.org/fileformat2.html#walformat)."""
    content = wal.read_bytes()
    page_bytes = int.from_bytes(content[8:12], "big")
    frames = range(32, len(content), 24 + page_bytes)
    return sum(
        content[frame + 8 : frame + 16] == content[16:24] and any(content[frame + 4 : frame + 8]) for frame in frames
    )


@contextmanager
def files_limited_to(size_bytes: int) -> Iterator[None]:
    """A disk that is full for every file that would grow beyond `size_bytes`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def write_lock(path: Path) -> Iterator[None]:
    """Another writer in the middle of its transaction."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def wal_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def size_bytes_of(path: Path) -> int:
    return path.stat().st_size


async def test_appends_at_the_same_time_share_a_transaction(log: SqliteLog, path: Path) -> None:
    await log.append(EVENTS, 0, records(b"before"))
    before = commits_in(wal_of(path))

    await asyncio.gather(*(log.append(EVENTS, 0, records(b"%d" % number)) for number in range(100)))

    assert 1 <= commits_in(wal_of(path)) - before <= 5


async def test_appends_one_after_another_have_a_transaction_each(log: SqliteLog, path: Path) -> None:
    for number in range(10):
        await log.append(EVENTS, 0, records(b"%d" % number))

    assert commits_in(wal_of(path)) == 10


async def test_an_append_of_this_process_wakes_without_looking_into_the_file(
    log: SqliteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_waiters, "POLL_S", 3600.0)
    waiting = asyncio.ensure_future(log.wait(EVENTS, 0, 0))
    await asyncio.sleep(0)
    await log.append(EVENTS, 0, records(b"a"))

    async with asyncio.timeout(10):
        assert await waiting


def test_every_connection_waits_for_the_disk(path: Path) -> None:
    with closing(connect(path, 0)) as db:
        assert db.execute("PRAGMA synchronous").fetchone() == (2,)


async def test_the_write_ahead_log_stays_small_while_others_read(log: SqliteLog, path: Path) -> None:
    other = SqliteLog.open(path)
    for _ in range(30):
        first = await log.append(EVENTS, 0, records(*[bytes(10_000)] * 100))
        await other.read(EVENTS, 0, first, 10)
        await other.bounds(EVENTS, 0)
        other.value_at(EVENTS, 0, first)
        await other.wait(EVENTS, 0, first)

    assert size_bytes_of(path) > 25_000_000
    assert size_bytes_of(wal_of(path)) < 12_000_000
    with closing(sqlite3.connect(path)) as checker:
        busy, _, _ = checker.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    assert not busy, "somebody still holds a snapshot"
    await other.close()


async def test_an_append_waits_for_another_writer_without_holding_up_the_loop(log: SqliteLog, path: Path) -> None:
    with write_lock(path):
        appending = asyncio.ensure_future(log.append(EVENTS, 0, records(b"a")))
        started_s = time.monotonic()
        for _ in range(50):
            await asyncio.sleep(0.001)
        assert time.monotonic() - started_s < BUSY_TIMEOUT_S / 2, "the loop stood still"
        assert not appending.done()
        assert not await log.read(EVENTS, 0, 0, 1)

    async with asyncio.timeout(10):
        assert await appending == 0


async def test_a_lock_that_is_held_too_long_is_reported_and_the_log_goes_on(path: Path) -> None:
    log = SqliteLog.open(path, busy_timeout_s=0.05)
    with write_lock(path):
        outcomes = await asyncio.gather(
            *(log.append(EVENTS, 0, records(b"a")) for _ in range(3)),
            log.delete_before(EVENTS, 0, 1),
            return_exceptions=True,
        )
    assert all(isinstance(outcome, FolderBusy) for outcome in outcomes)

    assert await log.append(EVENTS, 0, records(b"b")) == 0
    await log.close()


@pytest.mark.parametrize("size_bytes", [200_000, 6_000_000], ids=["at-commit", "at-insert"])
async def test_a_full_disk_fails_the_group_and_the_log_goes_on(log: SqliteLog, path: Path, size_bytes: int) -> None:
    await log.append(EVENTS, 0, records(b"before"))

    with files_limited_to(size_bytes_of(wal_of(path)) + 50_000):
        outcomes = await asyncio.gather(
            log.append(EVENTS, 0, records(bytes(size_bytes))),
            log.append(COMMANDS, 0, records(b"in the same group")),
            return_exceptions=True,
        )
        assert [type(outcome) for outcome in outcomes] == [StorageFailed, StorageFailed]
        assert values_of(await read_all(log, EVENTS, 0)) == [b"before"]

    await log.append(EVENTS, 0, records(bytes(size_bytes)))
    assert values_of(await read_all(log, EVENTS, 0)) == [b"before", bytes(size_bytes)]
    assert not await read_all(log, COMMANDS, 0)


async def test_a_clock_that_raises_fails_the_group_and_the_log_goes_on(path: Path) -> None:
    times = iter([1, None, 3])

    def clock() -> int:
        now_ms = next(times)
        if now_ms is None:
            raise RuntimeError("no time")
        return now_ms

    log = SqliteLog.open(path, clock=clock)
    await log.append(EVENTS, 0, records(b"a"))
    with pytest.raises(RuntimeError, match="no time"):
        await log.append(EVENTS, 0, records(b"b"))
    await log.append(EVENTS, 0, records(b"c"))

    assert values_of(await read_all(log, EVENTS, 0)) == [b"a", b"c"]
    await log.close()


async def test_many_instances_may_create_the_file_at_once(path: Path) -> None:
    logs = await asyncio.gather(*(asyncio.to_thread(SqliteLog.open, path) for _ in range(8)))

    await asyncio.gather(*(log.append(EVENTS, 0, records(b"%d" % number)) for number, log in enumerate(logs)))
    assert sorted(values_of(await read_all(logs[0], EVENTS, 0))) == [b"%d" % number for number in range(8)]
    await asyncio.gather(*(log.close() for log in logs))
