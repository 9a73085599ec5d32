"""Regular files inside an open folder: written whole or not at all, opened without following a link.

Whoever judges a file by its age and removes it holds the exclusive lock of its folder; whoever makes a file young (puts
a new one in its place, or refreshes it) holds the shared lock. So no file is removed by an age that it no longer has.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import BinaryIO, Final

from dagbok.events.errors import ArtifactDamaged

TEMPORARY: Final = re.compile(r"\.tmp-[0-9a-f]{32}")
_MODE: Final = 0o600
# O_NONBLOCK: opening a pipe that somebody put there must fail, not wait.
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_whole(folder: int, name: str, data: bytes) -> None:
    """Put a file in place durably: temporary file, fsync, rename, fsync of the folder. Mode 0600 whatever the umask.

    A failure leaves no temporary file, and what was there before; a killed process may leave a temporary file.
    """
    temporary = f".tmp-{secrets.token_hex(16)}"
    try:
        _write_synced(folder, temporary, data)
        with locked(folder, fcntl.LOCK_SH):
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
    os.fsync(folder)


def read_start(folder: int, name: str, limit_bytes: int) -> bytes:
    """The first `limit_bytes` bytes of a regular file, or all. Raises as `opened_file`, and `ArtifactDamaged` for what
    the disk cannot give back: no later try would help."""
    with opened_file(folder, name) as file:
        # A buffer of `limit_bytes` would be allocated at once, however small the file.
        size_bytes = min(limit_bytes, os.fstat(file.fileno()).st_size)
        try:
            return file.read(size_bytes)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            raise ArtifactDamaged(f"{name} cannot be read from its disk: {error.strerror}") from error


def refresh(folder: int, name: str) -> None:
    """Set the time of modification to now; file and entry are durable afterwards. Raises as `opened_file`."""
    with ExitStack() as stack:
        with locked(folder, fcntl.LOCK_SH):
            file = stack.enter_context(opened_file(folder, name))
            os.utime(file.fileno())
        os.fsync(file.fileno())
    os.fsync(folder)


def remove(folder: int, name: str, before_ms: int | None = None) -> bool:
    """Remove a regular file, with `before_ms` only if it was modified before; True when it was removed."""
    with locked(folder, fcntl.LOCK_EX):
        found = file_stat(folder, name)
        if before_ms is not None and modified_ms(found) >= before_ms:
            return False
        os.unlink(name, dir_fd=folder)
    return True


@contextmanager
def opened_file(folder: int, name: str) -> Iterator[BinaryIO]:
    """A regular file, open for reading. Raises `FileNotFoundError`, `ArtifactDamaged` when it is something else."""
    descriptor = os.open(name, _READ, dir_fd=folder)
    try:
        _regular(name, os.fstat(descriptor))
        with open(descriptor, "rb", closefd=False) as file:
            yield file
    finally:
        os.close(descriptor)


def file_stat(folder: int, name: str) -> os.stat_result:
    """The stat of a regular file. Raises as `opened_file`."""
    return _regular(name, os.stat(name, dir_fd=folder, follow_symlinks=False))


def regular_files(folder: int) -> list[tuple[str, os.stat_result]]:
    """The regular files of a folder with their stats, sorted by name; whatever else stands there is passed over."""
    found = []
    for name in sorted(os.listdir(folder)):
        with suppress(FileNotFoundError, ArtifactDamaged):
            found.append((name, file_stat(folder, name)))
    return found


def modified_ms(found: os.stat_result) -> int:
    """Time of modification in milliseconds since 1970."""
    return found.st_mtime_ns // 1_000_000


@contextmanager
def locked(folder: int, kind: int) -> Iterator[None]:
    """Hold the lock of an open folder (``LOCK_SH`` or ``LOCK_EX``), against threads and processes alike.

    It belongs to the descriptor: two openings of a folder exclude each other, and a killed process holds nothing.
    """
    fcntl.flock(folder, kind)
    try:
        yield
    finally:
        fcntl.flock(folder, fcntl.LOCK_UN)


def _write_synced(folder: int, name: str, data: bytes) -> None:
    descriptor = os.open(name, _CREATE, _MODE, dir_fd=folder)
    try:
        os.fchmod(descriptor, _MODE)
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _regular(name: str, found: os.stat_result) -> os.stat_result:
    if not stat.S_ISREG(found.st_mode):
        raise ArtifactDamaged(f"{name} is not a regular file in the artifact store")
    return found
