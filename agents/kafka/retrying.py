"""Work on partitions that is tried again after each failure: what passes is waited for, and what somebody has to act on
halts its partition, with an alarm, while the others go on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Final

import structlog

from dagbok.events.errors import DagbokError
from dagbok.projections.patience import patiently

logger = structlog.get_logger(__name__)

FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0
FAILED_S: Final = 60.0
"""What failed this long ago or less may be away still: the longest pause between two tries, and the time that one
takes."""


class Retrying:
    """`work` gets the number of a partition, and calls `going` when it does what it is for. `what`: the first part of
    the names of log lines, `<what>.halted` and `<what>.waits`.

    An error that may pass (`retry`: a broker, a store or a database that does not answer) is waited out as `patiently`
    does. Any other halts the partition: it is tried again after a pause that doubles up to `LONGEST_PAUSE_S`, and is
    the first one again behind work that was going for longer than the last.
    """

    def __init__(self, what: str, work: Callable[[int], Awaitable[None]]) -> None:
        self._what, self._work = what, work
        self.halted: dict[int, DagbokError] = {}
        """The partitions at which going on would be wrong, and why."""
        self._failed_s: dict[int, float] = {}
        self._going_s: dict[int, float] = {}

    def going(self, partition: int) -> None:
        """Its work has what it needs, and goes on."""
        self.halted.pop(partition, None)
        self._going_s[partition] = monotonic()

    @property
    def excused(self) -> frozenset[int]:
        """The partitions that stand still for a reason that a restart would not change: they are halted, or what they
        need failed just now."""
        now_s = monotonic()
        failed = {number for number, at_s in self._failed_s.items() if now_s - at_s < FAILED_S}
        return frozenset(failed | self.halted.keys())

    async def hold(self, partition: int) -> None:
        """Work on a partition until cancelled. Raises what is no `DagbokError`: nobody has foreseen it."""
        paused_s, pause_s = 0.0, FIRST_PAUSE_S
        try:
            while True:
                try:
                    await patiently(lambda: self._try(partition), lambda *told: self._waits(partition, *told))
                except DagbokError as error:
                    if self._went_on_s(partition) > paused_s:
                        pause_s = FIRST_PAUSE_S
                    self._halts(partition, error, pause_s)
                await asyncio.sleep(pause_s)
                paused_s, pause_s = pause_s, min(2 * pause_s, LONGEST_PAUSE_S)
        finally:
            for told in (self.halted, self._failed_s, self._going_s):
                told.pop(partition, None)

    async def _try(self, partition: int) -> None:
        self._going_s.pop(partition, None)
        await self._work(partition)

    def _went_on_s(self, partition: int) -> float:
        return monotonic() - self._going_s[partition] if partition in self._going_s else 0.0

    def _halts(self, partition: int, error: DagbokError, pause_s: float) -> None:
        self.halted[partition] = error
        logger.error(f"{self._what}.halted", partition=partition, **_told(error), again_s=pause_s)

    def _waits(self, partition: int, error: DagbokError, delay_s: float) -> None:
        self._failed_s[partition] = monotonic()
        logger.warning(f"{self._what}.waits", partition=partition, **_told(error), again_s=delay_s)


def _told(error: DagbokError) -> dict[str, str]:
    return {"code": str(error.code), "error": error.message, "advice": error.advice}
