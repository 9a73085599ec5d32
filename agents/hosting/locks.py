"""Locks of the operating system: held by a living process, free the moment it is gone, whatever killed it."""

from __future__ import annotations

import fcntl
import os
import stat
import threading
import weakref
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final

import msgspec

from dagbok.agents.hosting.unfit import cannot_use, is_no
from dagbok.events.codes import Code
from dagbok.events.errors import DagbokError, InvalidInput
from dagbok.events.ids import ID_PATTERN
from dagbok.events.log.clock import system_ms

_OPEN: Final = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""A link is not followed, since the file that it points to would be overwritten; a pipe is not waited for."""
_HOLDER_BYTES: Final = 4_096


class Holder(msgspec.Struct, frozen=True):
    """Who holds a lock, as written into its file: process id of the system and of dagbok, since when (ms since 1970),
    and which pools it serves, if it has said so."""

    pid: int
    process: str
    since_ms: int
    pools: tuple[str, ...] | None = None


_held: Final[weakref.WeakSet[FileLock]] = weakref.WeakSet()
_taking: Final = threading.Lock()
"""Held while a lock is taken or given back, and by whoever forks: no child has a descriptor that is not in `_held`."""


class FileLock:
    """An exclusive lock on a file. It orders processes; what is safe without it is said by the log's `expect`.

    A child that was forked does not hold it, whatever becomes of its parent: a pool of processes that a worker started
    and that outlives a kill must not keep the folder.
    """

    def __init__(self, path: Path, process: str) -> None:
        self._path, self._process = path, process
        self._file: int | None = None
        self._since_ms = 0

    @property
    def held(self) -> bool:
        """Whether this object holds it."""
        return self._file is not None

    def try_acquire(self) -> bool:
        """Take the lock if it is free, without waiting. Raises `StorageFailed` when something else than a regular file
        stands there, or the file system does not let it be made."""
        with _taking:
            return self._file is not None or self._take()

    def _take(self) -> bool:
        file = self._open(os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return False
        except OSError as error:
            os.close(file)
            raise cannot_use(self._path, error) from error
        self._since_ms = system_ms()
        self._write(file, None)
        self._file = file
        _held.add(self)
        return True

    def say(self, pools: Iterable[str]) -> None:
        """Write into the file of a lock that is held which pools its process serves."""
        if self._file is not None:
            self._write(self._file, tuple(pools))

    def _write(self, file: int, pools: tuple[str, ...] | None) -> None:
        holder = msgspec.json.encode(Holder(os.getpid(), self._process, self._since_ms, pools))
        with suppress(OSError):  # on a full disk, say: who holds it is for people, the lock is held all the same
            os.ftruncate(file, 0)
            os.pwrite(file, holder, 0)

    def release(self) -> None:
        """Give it back. Idempotent."""
        with _taking:
            if self._file is not None:
                os.close(self._file)
                self._file = None
            _held.discard(self)

    def disown(self) -> None:
        """Of a child that was forked: it is its parent that holds the lock."""
        if self._file is not None:
            os.close(self._file)  # the parent's descriptor keeps the lock; unlocking would take it from both
            self._file = None

    def holder(self) -> Holder | None:
        """Who wrote itself into the file last, whether or not it still holds the lock."""
        try:
            file = self._open(os.O_RDONLY)
        except DagbokError:
            return None
        try:
            return msgspec.json.decode(os.pread(file, _HOLDER_BYTES, 0), type=Holder)
        except (OSError, msgspec.MsgspecError, RecursionError):
            return None
        finally:
            os.close(file)

    def _open(self, flags: int) -> int:
        try:
            found = self._path.lstat()
            if not stat.S_ISREG(found.st_mode):
                raise is_no("file", self._path, found)
        except FileNotFoundError:
            pass  # it is made
        except OSError as error:
            raise cannot_use(self._path, error) from error
        try:
            file = os.open(self._path, flags | _OPEN, 0o600)
        except OSError as error:
            raise cannot_use(self._path, error) from error
        if not stat.S_ISREG((found := os.fstat(file)).st_mode):
            os.close(file)
            raise is_no("file", self._path, found)
        return file

    def __enter__(self) -> FileLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _leave_to_parent() -> None:
    for lock in _held:
        lock.disown()
    _held.clear()
    _taking.release()


os.register_at_fork(before=_taking.acquire, after_in_parent=_taking.release, after_in_child=_leave_to_parent)


class ProcessLocks:
    """One lock per process in a folder; a free one says that its process is gone for sure. Raises `InvalidInput` when
    `process` is no id that may name a file."""

    def __init__(self, folder: Path, process: str) -> None:
        self._folder, self._process = folder, process
        self._own_path = self._path(process)
        self._own = FileLock(self._own_path, process)

    def acquire(self) -> None:
        """Say that this process lives."""
        self._own.try_acquire()

    def serves(self, pools: Iterable[str]) -> None:
        """Say which pools this process serves, for people who wonder why a task waits."""
        self._own.say(pools)

    def release(self) -> None:
        """This process is about to end in good order."""
        self._own_path.unlink(missing_ok=True)
        self._own.release()

    def is_gone(self, process: str) -> bool:
        """True when the process cannot be alive: its lock is free, or there is none. No process has a name that could
        not be the name of its lock; whatever file such a name leads to is left alone."""
        if not _may_name_a_file(process):
            return True
        if process == self._process:
            return False
        path = self._path(process)
        try:
            if not stat.S_ISREG(path.lstat().st_mode):
                return True  # nobody can hold it: it is no lock
        except FileNotFoundError:
            return True
        lock = FileLock(path, process)
        if not lock.try_acquire():
            return False
        path.unlink(missing_ok=True)
        lock.release()
        return True

    def _path(self, process: str) -> Path:
        if not _may_name_a_file(process):
            raise InvalidInput(f"{process[:140]!r} is no id of a process", code=Code.INVALID_SPEC)
        return self._folder / f"{process}.lock"


def _may_name_a_file(process: str) -> bool:
    """Ids come from the log, where anybody may have written them: they must not lead out of the folder."""
    return ID_PATTERN.fullmatch(process) is not None and not process.startswith(".")
