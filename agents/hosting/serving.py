"""Which pools the living processes of a folder serve, seen from any process: each says it in its lock file.

Nothing but words follows from it: a person is told why a task waits. Who gets work is agreed on the queue.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

import msgspec

from dagbok.agents.hosting.folder import DataFolder
from dagbok.agents.hosting.locks import Holder
from dagbok.agents.hosting.presence import is_locked

YOUNG_S: Final = 2.0
"""A lock file that is younger may belong to a process that is just about to lock it: it is not tried."""
MOST_BYTES: Final = 1 << 20


def served_pools(folder: DataFolder) -> frozenset[str] | None:
    """The pools that somebody serves; none when that is not known: a process has not said what it serves (yet, or it is
    of an older dagbok), or the folder cannot be read. Blocks, microseconds for each process."""
    found: set[str] = set()
    try:
        paths = list(folder.processes.glob("*.lock"))
    except OSError:
        return None
    for path in paths:
        if not _lives(path):
            continue
        pools = _pools(path)
        if pools is None:
            return None
        found.update(pools)
    return frozenset(found)


def _lives(path: Path) -> bool:
    try:
        young = time.time() - path.stat().st_mtime < YOUNG_S
    except OSError:
        return False  # it went in this moment
    return young or is_locked(path)


def _pools(path: Path) -> tuple[str, ...] | None:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return ()
    except OSError:
        return None
    try:
        return msgspec.json.decode(os.pread(file, MOST_BYTES, 0), type=Holder).pools
    except (OSError, msgspec.MsgspecError, RecursionError):
        return None
    finally:
        os.close(file)
