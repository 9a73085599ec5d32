"""Whether the file of a log still stands where it was opened.

The system lets a process go on with a file that was removed, moved or exchanged: what is written is taken, and nobody
will ever find it at that place. A log that does not look would confirm what is lost.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from dagbok.events.errors import LogLost

_DESCRIPTORS: Final = "/dev/fd"
_ADVICE: Final = "bring the data folder back to its place, or a backup of it, then start again"


class FilePlace:
    """The file at a path, as it was when this was made. May be used from any thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = _file_at(path)

    def check(self) -> None:
        """Raise `LogLost` when another file is there now, or none. Microseconds."""
        found = _file_at(self._path)
        if found != self._file:
            what = "removed or moved" if found is None else "exchanged for another file"
            raise LogLost(f"{self._path} was {what} while it was in use", advice=_ADVICE)

    def is_open(self) -> bool:
        """Whether this process has a descriptor of the file. True as well where the system does not tell."""
        try:
            numbers = [int(name) for name in os.listdir(_DESCRIPTORS)]
        except (OSError, ValueError):
            return True
        return any(_file_of(number) == self._file for number in numbers)


def _file_at(path: Path) -> tuple[int, int] | None:
    """Device and inode; none: no file."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def _file_of(descriptor: int) -> tuple[int, int] | None:
    """The same of a descriptor; none: it is closed."""
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return found.st_dev, found.st_ino
