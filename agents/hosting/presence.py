"""Who owns a data folder, and whether that process shows that it lives.

The owner touches the file of its lock once a second. A process that was stopped, or hangs, keeps the lock and touches
nothing: so others can say so, and nobody takes over what is not free.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

import msgspec

from dagbok.agents.hosting.folder import DataFolder
from dagbok.agents.hosting.locks import Holder
from dagbok.events.log.clock import system_ms

BEAT_S: Final = 1.0
SILENT_S: Final = 4.0
"""An owner that has not touched its lock for so long is said not to respond. Nothing but words follows from it."""

OwnerState = Literal["none", "alive", "silent"]


class OwnerSeen(msgspec.Struct, frozen=True):
    """How the ownership of a folder looks from outside. `pid` is the owner's process; `since_s`: for how long it has
    been the owner; `silent_s`: for how long it has not shown that it lives."""

    state: OwnerState
    folder: str
    pid: int = 0
    since_s: int = 0
    silent_s: int = 0

    def __str__(self) -> str:
        """One sentence without a full stop."""
        if self.state == "none":
            return f"no process owns {self.folder}"
        owned = f"process {self.pid} has owned {self.folder} for {self.since_s} s"
        if self.state == "alive":
            return owned
        return f"owner not responding: {owned} and has been silent for {self.silent_s} s"


def look_at_owner(folder: DataFolder) -> OwnerSeen:
    """Look, without waiting and without taking anything."""
    path = folder.scheduler_lock
    if not is_locked(path):
        return OwnerSeen("none", str(folder.root))
    try:
        holder = msgspec.json.decode(path.read_bytes(), type=Holder)
        beat_ms = int(path.stat().st_mtime * 1000)
    except (OSError, msgspec.MsgspecError):
        # It is just being taken: its owner has not written its name yet.
        return OwnerSeen("alive", str(folder.root))
    now_ms = system_ms()
    silent_s = max(0, now_ms - beat_ms) / 1000
    return OwnerSeen(
        state="silent" if silent_s >= SILENT_S else "alive",
        folder=str(folder.root),
        pid=holder.pid,
        since_s=max(0, now_ms - holder.since_ms) // 1000,
        silent_s=int(silent_s),
    )


async def beat(folder: DataFolder) -> None:
    """Of the owner: show once a second that it lives, until cancelled."""
    while True:
        # When it fails others are told of an owner that does not respond: no more than that depends on it.
        with suppress(OSError):
            os.utime(folder.scheduler_lock)
        await asyncio.sleep(BEAT_S)


def is_locked(path: Path) -> bool:
    """Whether somebody holds the lock on a file. It is tried for sharing, for microseconds: whoever tries to take it at
    that moment tries again."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(file)
