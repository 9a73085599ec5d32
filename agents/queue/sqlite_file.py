"""`queue.db`: the file through which the processes of one data folder hand each other dispatches and replies.

    members    process, beat, state      who takes part; `beat` grows while it lives
    work       id, sender, number, taker, kind, pool, value      one row per letter until its taker has picked it up
    replies    id, address, value, put_ms      read by whoever listens there; removed after some minutes

Nothing in it is needed: what is lost is dispatched and asked again. So nothing is synced, a file that is damaged is
made anew, and one that is deleted or replaced under way is noticed by its number on the disk.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog

from dagbok.events.errors import LogCorrupt
from dagbok.events.log.clock import system_ms
from dagbok.events.log.sqlite_schema import FAILURES, explain, while_busy

logger = structlog.get_logger(__name__)

KEEP_REPLIES_MS: Final = 5 * 60 * 1000
KEEP_REPLIES: Final = 50_000
CLEAN_EVERY_S: Final = 10.0
OPENINGS: Final = 5
MAX_WAL_BYTES: Final = 64 * 1024 * 1024
"""A process that is stopped within a read keeps the write-ahead log from being reset."""

_PRAGMAS: Final = ("PRAGMA synchronous=OFF", "PRAGMA cell_size_check=ON", "PRAGMA journal_size_limit=4194304")
_CREATE: Final = (
    "CREATE TABLE IF NOT EXISTS members (process TEXT PRIMARY KEY, beat INTEGER NOT NULL, state BLOB NOT NULL)",
    "CREATE TABLE IF NOT EXISTS work (id INTEGER PRIMARY KEY AUTOINCREMENT, sender TEXT NOT NULL, "
    "number INTEGER NOT NULL, taker TEXT NOT NULL, kind TEXT NOT NULL, pool TEXT NOT NULL, value BLOB NOT NULL)",
    "CREATE TABLE IF NOT EXISTS replies (id INTEGER PRIMARY KEY AUTOINCREMENT, address TEXT NOT NULL, "
    "value BLOB NOT NULL, put_ms INTEGER NOT NULL)",
)
_SIDES: Final = ("", "-wal", "-shm")


class QueueFile:
    """One connection. Its calls block for well under a millisecond where nothing holds the lock; any thread, one at a
    time. Each raises SQLite's own errors (`FAILURES`); damage is mended before."""

    def __init__(self, path: Path, busy_timeout_s: float) -> None:
        self._path, self._busy_timeout_s = path, busy_timeout_s
        self._db: sqlite3.Connection | None = None
        self._numbers: tuple[int, ...] = ()
        self._version = -1
        self._cleaned_s = 0.0

    @property
    def is_open(self) -> bool:
        """Whether there is a file that this object has opened."""
        return self._db is not None

    def has_changed(self) -> bool:
        """Whether another process may have written since the last `look`. Microseconds; never waits."""
        if self._db is None:
            return self._path.exists()
        try:
            return self._number(self._path) != self._numbers[0] or self._data_version(self._db) != self._version
        except FAILURES:
            return True

    def open(self, *, create: bool) -> bool:
        """Have the file open that is there now; create it where wanted. True when it is another one than before."""
        if self._db is not None and self._file_numbers() != self._numbers:
            logger.info("queue.replaced", path=str(self._path))
            self.close()
        if self._db is not None or not (create or self._path.exists()):
            return False
        for _ in range(OPENINGS):
            there_before = self._made()
            db = self._prepared()
            numbers = self._file_numbers()
            if numbers[0] == there_before:
                self._db, self._numbers = db, numbers
                return True
            # Another process has made it anew meanwhile: this may be the one that was removed.
            db.close()
        raise sqlite3.OperationalError("the queue is made anew again and again")

    def _made(self) -> int:
        """The number of the file that is there, or of an empty one that is made now."""
        try:
            file = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o644)
        except FileExistsError:
            return self._number(self._path)
        try:
            return os.fstat(file).st_ino
        finally:
            os.close(file)

    def _prepared(self) -> sqlite3.Connection:
        db = sqlite3.connect(self._path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            for pragma in _PRAGMAS:
                db.execute(pragma)
            while_busy(lambda: db.execute("PRAGMA journal_mode=WAL").fetchall(), self._busy_timeout_s)
            for statement in _CREATE:
                while_busy(lambda statement=statement: db.execute(statement), self._busy_timeout_s)  # type: ignore[misc]
        except BaseException:
            db.close()
            raise
        return db

    def look(self) -> sqlite3.Connection:
        """The connection, at the beginning of an exchange: what others write from now on counts as a change."""
        db = self._connection()
        self._version = self._data_version(db)
        return db

    def write(self, work: Callable[[sqlite3.Connection], None]) -> None:
        """Do `work` in a transaction of its own."""
        db = self._connection()
        while_busy(lambda: db.execute("BEGIN IMMEDIATE"), self._busy_timeout_s)
        try:
            work(db)
            self._clean(db)
            db.execute("COMMIT")
        finally:
            with suppress(sqlite3.Error):
                if db.in_transaction:
                    db.execute("ROLLBACK")

    def make_anew(self, why: str) -> None:
        """Remove the file; the next `open` creates it. Others notice by themselves."""
        logger.warning("queue.made_anew", path=str(self._path), why=why)
        self.close()
        # The sides first: a new file must not meet the old write-ahead log.
        for side in reversed(_SIDES):
            Path(f"{self._path}{side}").unlink(missing_ok=True)

    def close(self) -> None:
        """Idempotent."""
        db, self._db = self._db, None
        if db is not None:
            with suppress(sqlite3.Error):
                db.close()

    def is_damage(self, error: BaseException) -> bool:
        """Whether only a new file helps."""
        if isinstance(error, sqlite3.ProgrammingError):
            return True  # something in this process has closed the connection
        return isinstance(error, FAILURES) and isinstance(explain(error, self._path), LogCorrupt)

    def _connection(self) -> sqlite3.Connection:
        if self._db is None:
            raise sqlite3.OperationalError("the queue is not open")
        return self._db

    def _clean(self, db: sqlite3.Connection) -> None:
        now_s = time.monotonic()
        if now_s - self._cleaned_s < CLEAN_EVERY_S:
            return
        self._cleaned_s = now_s
        now_ms = system_ms()
        db.execute(
            "DELETE FROM replies WHERE put_ms NOT BETWEEN ? AND ? OR id <= (SELECT max(id) FROM replies) - ?",
            (now_ms - KEEP_REPLIES_MS, now_ms + KEEP_REPLIES_MS, KEEP_REPLIES),
        )
        db.execute("DELETE FROM work WHERE taker NOT IN (SELECT process FROM members)")
        wal = Path(f"{self._path}-wal")
        if wal.exists() and wal.stat().st_size > MAX_WAL_BYTES:
            raise sqlite3.DatabaseError("its write-ahead log has grown without end")

    def _file_numbers(self) -> tuple[int, ...]:
        return tuple([self._number(Path(f"{self._path}{side}")) for side in _SIDES])

    @staticmethod
    def _number(path: Path) -> int:
        try:
            return os.stat(path).st_ino
        except FileNotFoundError:
            return -1

    @staticmethod
    def _data_version(db: sqlite3.Connection) -> int:
        (version,) = db.execute("PRAGMA data_version").fetchall()[0]
        return int(version)


def rows_of(db: sqlite3.Connection, statement: str, values: Sequence[str | int] = ()) -> list[tuple[object, ...]]:
    """All rows at once: an open statement would keep its snapshot."""
    return db.execute(statement, values).fetchall()
