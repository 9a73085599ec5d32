"""The file of the SQLite log: its connections, its tables, its format number, and its errors in dagbok's words.

    meta       name, value: `format` (number of the schema), `last_ms.<topic>` (append time that outlives the records)
    commands   id, ts, key, value, headers
    events     the same

`id` is the offset + 1. It is an AUTOINCREMENT rowid: SQLite keeps the highest one that was ever given in
`sqlite_sequence`, so an offset is never given twice, even when its record is gone. `ts` is the append time in
milliseconds. `headers` is a JSON object, or NULL when there are none.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final, TypeVar

from dagbok.events.errors import LET_WRITE, DagbokError, FolderBusy, FormatTooNew, LogCorrupt, StorageFailed
from dagbok.events.log.checks import TOPICS

FORMAT: Final = 1
BUSY_TIMEOUT_S: Final = 5.0

_PRAGMAS: Final = (
    "PRAGMA synchronous=FULL",
    "PRAGMA fullfsync=ON",  # macOS: without it a sync stops at the drive's cache
    "PRAGMA cell_size_check=ON",  # a damaged page is noticed before it is used
    "PRAGMA secure_delete=FAST",  # no page is written only to be wiped
    "PRAGMA journal_size_limit=67108864",  # a write-ahead log that has grown shrinks again
)
_CREATE: Final = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL)",
    f"INSERT INTO meta VALUES ('format', {FORMAT})",
    *(
        f"CREATE TABLE {topic} (id INTEGER PRIMARY KEY AUTOINCREMENT, ts INTEGER NOT NULL, "
        "key TEXT NOT NULL, value BLOB NOT NULL, headers TEXT)"
        for topic in TOPICS
    ),
)

_NOT_WRITABLE: Final = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}
_BUSY: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_UNREADABLE: Final = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOTADB}
"""What SQLite says of descriptors that were closed behind its back; of other causes too."""
_CORRUPT: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT}

Failure = sqlite3.Error | OSError | UnicodeDecodeError
FAILURES: Final = (sqlite3.Error, OSError, UnicodeDecodeError)
"""What a call of SQLite raises. Python cannot even decode the message when that names a damaged part of the schema."""

_START_AGAIN: Final = (
    "the log is unharmed: start again, and let no function close connections or descriptors that it has not opened"
)

T = TypeVar("T")


def prepare(path: Path, busy_timeout_s: float) -> None:
    """Create the log in `path`, or make sure that this version can read the one there; if not, it stays as it is.

    Raises `FormatTooNew`, `LogCorrupt`, `StorageFailed` or `FolderBusy`.
    """
    try:
        with closing(connect(path, busy_timeout_s)) as db:
            if not _tables(db):
                while_busy(lambda: _create(db), busy_timeout_s)
                _sync_folder(path.parent)
            _check(db, path)
            while_busy(lambda: _use_wal(db, path), busy_timeout_s)
    except FAILURES as error:
        raise explain(error, path) from error


def connect(path: Path, busy_timeout_s: float) -> sqlite3.Connection:
    """A connection that may be used from any thread, by one at a time. It commits only when told to."""
    db = sqlite3.connect(path, timeout=busy_timeout_s, isolation_level=None, check_same_thread=False)
    try:
        for pragma in _PRAGMAS:
            db.execute(pragma)
    except BaseException:
        db.close()
        raise
    return db


def while_busy(action: Callable[[], T], timeout_s: float) -> T:
    """Repeat `action` until the lock that it wants is free. Blocks; raises SQLite's own error after `timeout_s`.

    SQLite's own busy handler sleeps up to 100 ms between two looks: against a process that commits all the time it
    hardly ever hits the moment in which the lock is free. This one looks again after at most 2 ms.
    """
    deadline = time.monotonic() + timeout_s
    pause_s = 0.0001
    while True:
        try:
            return action()
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() >= deadline:
                raise
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.5, 0.002)


def is_busy(error: BaseException) -> bool:
    """True when another connection holds the lock, and the same statement may succeed later."""
    return isinstance(error, sqlite3.Error) and _primary_code(error) in _BUSY


def explain(error: Failure, path: Path, is_open: Callable[[], bool] | None = None) -> DagbokError:
    """The error of dagbok that says in one line what `error` means for the log in `path`.

    `is_open`: of a file that was opened, whether this process still has it open. When something in this process has
    closed it, nothing is wrong with the file, and no backup helps.
    """
    if isinstance(error, sqlite3.Error) and _was_closed_here(error, is_open):
        explained: DagbokError = StorageFailed(f"{path} was closed by this process: {error}", advice=_START_AGAIN)
        explained.__cause__ = error
        return explained
    advice = LET_WRITE if isinstance(error, sqlite3.Error) and _primary_code(error) in _NOT_WRITABLE else None
    explained = _class_of(error)(f"{path}: {error}", advice=advice)
    explained.__cause__ = error
    return explained


def _was_closed_here(error: sqlite3.Error, is_open: Callable[[], bool] | None) -> bool:
    if isinstance(error, sqlite3.ProgrammingError) and not hasattr(error, "sqlite_errorcode"):
        return True  # of Python: the connection is closed
    return is_open is not None and _primary_code(error) in _UNREADABLE and not is_open()


def _class_of(error: Failure) -> type[DagbokError]:
    if isinstance(error, UnicodeDecodeError):
        return LogCorrupt
    if isinstance(error, OSError):
        return StorageFailed
    code = _primary_code(error)
    if code in _BUSY:
        return FolderBusy
    return LogCorrupt if code in _CORRUPT else StorageFailed


def _primary_code(error: sqlite3.Error) -> int:
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)  # absent: Python could not decode a text
    return code & 0xFF


def _create(db: sqlite3.Connection) -> None:
    db.execute("BEGIN IMMEDIATE")
    try:
        if not _tables(db):  # another process may have been faster
            for statement in _CREATE:
                db.execute(statement)
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _use_wal(db: sqlite3.Connection, path: Path) -> None:
    """Idempotent; the mode stays with the file. Some file systems cannot have it."""
    (mode,) = db.execute("PRAGMA journal_mode=WAL").fetchall()[0]
    if mode != "wal":
        raise StorageFailed(f"{path}: its file system has no shared memory for a write-ahead log")


def _check(db: sqlite3.Connection, path: Path) -> None:
    if missing := {"meta", *TOPICS} - _tables(db):
        raise LogCorrupt(f"{path} is not a log of dagbok: it has no table {sorted(missing)[0]}")
    rows = db.execute("SELECT value FROM meta WHERE name = 'format'").fetchall()
    found = rows[0][0] if rows else None
    if not isinstance(found, int) or found < 1:
        raise LogCorrupt(f"{path} says that its format is {found!r}")
    if found > FORMAT:
        raise FormatTooNew(f"{path} has format {found}, this version knows {FORMAT}")


def _tables(db: sqlite3.Connection) -> set[str]:
    return {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()}


def _sync_folder(folder: Path) -> None:
    """Make the new file's name durable: SQLite syncs what is in it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
