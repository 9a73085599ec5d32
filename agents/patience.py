"""How long a disk may fail before whoever depends on it gives up: a shortage that passes is survived, one that stays is
said."""

from __future__ import annotations

import asyncio

import structlog

from dagbok.events.codes import Code
from dagbok.events.errors import DagbokError, StorageFailed

logger = structlog.get_logger(__name__)

LONGEST_S = 10.0
"""Seconds of failures without a success in between."""


class Patience:
    """Of one activity that is tried again and again. Times are those of the event loop."""

    def __init__(self) -> None:
        self._since_s: float | None = None

    @property
    def failing(self) -> bool:
        """The storage has failed and not worked since. It has been told: there is no need to tell it each time."""
        return self._since_s is not None

    def restored(self) -> None:
        """It has succeeded."""
        self._since_s = None

    def bear(self, error: Exception) -> None:
        """It has failed. Raises `StorageFailed` when the storage has failed for too long now; other failures, such as a
        lock that another process holds, are not counted."""
        if not _is_of_storage(error):
            return
        now_s = asyncio.get_running_loop().time()
        if self._since_s is None:
            self._since_s = now_s
            logger.warning("storage.failing", error=str(error), given_up_after_s=LONGEST_S)
        elif now_s - self._since_s >= LONGEST_S:
            raise _told(error) from error


def _is_of_storage(error: Exception) -> bool:
    return isinstance(error, OSError) or (isinstance(error, DagbokError) and error.code == Code.STORAGE_FAILED)


def _told(error: Exception) -> StorageFailed:
    if isinstance(error, DagbokError):
        return StorageFailed(error.message, advice=error.advice)
    return StorageFailed(str(error))
