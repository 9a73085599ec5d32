"""What may stand where a data folder keeps its files, and what to do about anything else."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final

from dagbok.events.errors import LET_WRITE, StorageFailed

REMOVE: Final = "remove it, or use another data folder (--data)"
_NOT_WRITABLE: Final = {errno.EACCES, errno.EPERM, errno.EROFS}
_KINDS: Final = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
    stat.S_IFREG: "a file",
}


def check_plain(path: Path) -> None:
    """Raise `StorageFailed` unless `path` is a regular file, a link to one, or absent. Opens nothing: a pipe would
    wait."""
    try:
        found = path.stat()
    except FileNotFoundError:
        if path.is_symlink():
            raise StorageFailed(
                f"{path} is a link to a file that is not there", advice="mount what it points to, or remove the link"
            ) from None
    except OSError as error:
        raise cannot_use(path, error) from error
    else:
        if not stat.S_ISREG(found.st_mode):
            raise is_no("file", path, found)


def check_folder(path: Path) -> None:
    """Make the folder if it is missing. Raises `StorageFailed` when that is impossible, or it is not to be written."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise is_no("folder", path, path.lstat()) from None
    except NotADirectoryError:
        above = next(folder for folder in path.parents if folder.exists())
        raise is_no("folder", above, above.stat()) from None
    except OSError as error:
        raise cannot_use(path, error) from error
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise StorageFailed(f"{path} cannot be written", advice=LET_WRITE)


def is_no(wanted: str, path: Path, found: os.stat_result) -> StorageFailed:
    """What to say of a `path` that is something else than what is `wanted` there."""
    kind = _KINDS.get(stat.S_IFMT(found.st_mode), "something else")
    return StorageFailed(f"{path} is {kind}, not a {wanted}", advice=REMOVE)


def cannot_use(path: Path, error: OSError) -> StorageFailed:
    """What to say of a `path` that the system refuses."""
    advice = LET_WRITE if error.errno in _NOT_WRITABLE else None
    return StorageFailed(f"cannot use {path}: {error.strerror or error}", advice=advice)
