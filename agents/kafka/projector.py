"""The projector on Kafka: writes the tables from the partitions of `events` that its group gives to this process."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

import structlog

from dagbok.agents.kafka.group import SESSION_S, Group
from dagbok.agents.kafka.names import projector_group
from dagbok.agents.kafka.retrying import Retrying
from dagbok.events.errors import DagbokError
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.log.port import EVENTS, Log
from dagbok.projections.feed import Progress
from dagbok.projections.projector import Projector
from dagbok.projections.store import Tables

logger = structlog.get_logger(__name__)

NOTHING: Final = Progress()


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
    ) -> None:
        """`session_s` as in `Group`."""
        self._log, self._tables = log, tables
        self.projecting: dict[int, Projector] = {}
        """By partition, what projects it here."""
        self._ended: dict[int, Progress] = {}
        """By partition, what was done by those that ended."""
        self._retrying = Retrying("projection", self._project)
        self.group = Group(
            settings,
            settings.prefix + EVENTS,
            projector_group(settings.prefix),
            self._retrying.hold,
            session_s=session_s,
        )

    async def run(self) -> None:
        """Until cancelled; then the partitions go to others. While the database or the broker is away, it is waited
        for. A partition that cannot be read on (lost records, events of a newer dagbok) is held with an alarm, and is
        tried again: the others go on. Raises whatever nobody has foreseen."""
        await self.group.run()

    @property
    def progress(self) -> Mapping[int, Progress]:
        """By partition, what was done here since the process began, however often it was begun anew."""
        found = dict(self._ended)
        for partition, projector in self.projecting.items():
            found[partition] = found.get(partition, NOTHING) + projector.progress
        return found

    @property
    def halted(self) -> Mapping[int, DagbokError]:
        """The partitions that cannot be read on, and why."""
        return self._retrying.halted

    async def excused(self) -> frozenset[int]:
        """The partitions that stand still for a reason that a restart would not change: they are halted, the database
        failed just now, or views are built anew, which takes as long as it takes."""
        try:
            outdated = await asyncio.to_thread(self._tables.outdated)
        except DagbokError:
            return self.group.partitions
        if outdated:
            return self.group.partitions
        return self._retrying.excused

    async def _project(self, partition: int) -> None:
        projector = self.projecting[partition] = Projector(self._log, self._tables, partition)
        logger.info("projection.begun", partition=partition)
        try:
            await projector.catch_up()
            self._retrying.going(partition)
            await projector.run()
        finally:
            self._ended[partition] = self.progress[partition]
            self.projecting.pop(partition, None)
