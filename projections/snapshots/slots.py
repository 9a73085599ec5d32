"""Manifest slots as files of a folder; see `Slots` in `manifest.py`."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from dagbok.events.errors import StorageFailed


class FileSlots:
    """`<partition>-0.manifest` and `<partition>-1.manifest`, replaced atomically."""

    def __init__(self, folder: Path, partition: int) -> None:
        self._folder, self._partition = folder, partition

    def read(self) -> list[bytes]:
        """What cannot be read, or is no regular file, counts as empty."""
        found = []
        for slot in (0, 1):
            try:
                found.append(_read_regular(self._path(slot)))
            except OSError:
                continue
        return found

    def write(self, slot: int, data: bytes) -> None:
        """Raises `StorageFailed`; the slot is then as it was."""
        path = self._path(slot)
        fresh = path.with_suffix(".new")
        try:
            fresh.unlink(missing_ok=True)
            file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with open(file, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(fresh, path)
            _sync_folder(self._folder)
        except OSError as error:
            raise StorageFailed(f"cannot write {path.name}: {error.strerror or error}") from error

    def clear(self, slot: int) -> None:
        """An absent one is clear. Raises `StorageFailed`."""
        path = self._path(slot)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StorageFailed(f"cannot remove {path.name}: {error.strerror or error}") from error

    def _path(self, slot: int) -> Path:
        return self._folder / f"{self._partition}-{slot}.manifest"


def _read_regular(path: Path) -> bytes:
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe is not waited for
    with open(file, "rb") as stream:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise FileNotFoundError(path)
        return stream.read()


def _sync_folder(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)
