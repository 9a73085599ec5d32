"""The projector on Kafka: writes the tables from the partitions of `events` that its group gives to this process."""

from __future__ import annotations

import asyncio
import time
from typing import Final

import structlog

from dagbok.agents.kafka.group import SESSION_S, Group
from dagbok.agents.kafka.names import projector_group
from dagbok.events.errors import DagbokError
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.log.port import EVENTS, Log
from dagbok.projections.patience import patiently
from dagbok.projections.projector import Projector
from dagbok.projections.store import Tables

logger = structlog.get_logger(__name__)

FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0
FAILED_S: Final = 60.0
"""A database that failed this long ago or less may be away still: the longest pause between two tries, and the time
that one takes."""


class ProjectorService:
    """Any number of processes run one: each partition is projected by one of them, and by none or two for a moment when
    somebody comes or goes. Two do no harm: the tables compare where they stand."""

    def __init__(
        self,
        settings: KafkaSettings,
        log: Log,
        tables: Tables,
        *,
        session_s: float = SESSION_S,
        member: str | None = None,
    ) -> None:
        """`session_s` and `member` as in `Group`."""
        self._log, self._tables = log, tables
        self.projecting: dict[int, Projector] = {}
        """By partition, what projects it here."""
        self.halted: dict[int, DagbokError] = {}
        """The partitions that cannot be read on, and why."""
        self._failed_s: dict[int, float] = {}
        self.group = Group(
            settings,
            settings.prefix + EVENTS,
            projector_group(settings.prefix),
            self._hold,
            session_s=session_s,
            member=member,
        )

    async def run(self) -> None:
        """Until cancelled; then the partitions go to others. While the database or the broker is away, it is waited
        for. A partition that cannot be read on (lost records, events of a newer dagbok) is held with an alarm, and is
        tried again: the others go on. Raises whatever nobody has foreseen."""
        await self.group.run()

    async def excused(self) -> frozenset[int]:
        """The partitions that stand still for a reason that a restart would not change: they are halted, the database
        failed just now, or views are built anew, which takes as long as it takes."""
        try:
            outdated = await asyncio.to_thread(self._tables.outdated)
        except DagbokError:
            return self.group.partitions
        if outdated:
            return self.group.partitions
        now_s = time.monotonic()
        failed = {number for number, at_s in self._failed_s.items() if now_s - at_s < FAILED_S}
        return frozenset(failed | self.halted.keys())

    async def _hold(self, partition: int) -> None:
        pause_s = FIRST_PAUSE_S
        try:
            while True:
                try:
                    await self._project(partition)
                except DagbokError as error:
                    self.halted[partition] = error
                    logger.error(
                        "projection.halted",
                        partition=partition,
                        code=str(error.code),
                        error=error.message,
                        advice=error.advice,
                        again_s=pause_s,
                    )
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        finally:
            self.halted.pop(partition, None)
            self._failed_s.pop(partition, None)

    async def _project(self, partition: int) -> None:
        projector = self.projecting[partition] = Projector(self._log, self._tables, partition)
        logger.info("projection.begun", partition=partition)

        def waits(error: DagbokError, delay_s: float) -> None:
            self._failed_s[partition] = time.monotonic()
            logger.warning("projection.waits", partition=partition, error=error.message, again_s=delay_s)

        async def run() -> None:
            await projector.catch_up()
            self.halted.pop(partition, None)
            await projector.run()

        try:
            await patiently(run, waits)
        finally:
            self.projecting.pop(partition, None)
