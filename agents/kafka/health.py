"""Whether a process does its work: it looks at its own progress, and ends when there is none although there could be.

A part may be dead while its process lives on, by a fault of a library say. So liveness is not that the process answers,
but that what there is to read is read. Whoever ends is started again by what runs it, and goes on from the log.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import structlog

from dagbok.agents.kafka.metrics import Metrics
from dagbok.agents.kafka.offsets import Offsets
from dagbok.agents.kafka.parts import Part
from dagbok.agents.kafka.stalls import STALL_S, Stalls, Standing
from dagbok.events.errors import DagbokError
from dagbok.events.log.kafka_client import Place
from dagbok.events.log.kafka_errors import FAILURES, explain
from dagbok.events.log.kafka_settings import KafkaSettings

logger = structlog.get_logger(__name__)

LONGEST_INTERVAL_S: Final = 5.0


class Health:
    """Of one process, from its start. `stall_s`: so long a partition may stand still with something to read."""

    def __init__(self, role: str, *, stall_s: float = STALL_S) -> None:
        self.role, self.metrics = role, Metrics(role)
        self._stall_s = stall_s
        self._parts: Sequence[Part] = ()
        self._standings: Sequence[tuple[Standing, int]] = ()
        self._waits_for = "its start"
        self._dead: Sequence[str] = ()
        self.on_failure: Callable[[], None] = lambda: None
        """Called when a part has failed or stands still, before the process lets go of what it has."""

    @property
    def dead(self) -> Sequence[str]:
        """What stands still, in words; nothing while all is well."""
        return self._dead

    @property
    def unready(self) -> Sequence[str]:
        """What this process waits for before it takes part."""
        if self._waits_for:
            return [self._waits_for]
        return [f"{part.role} has not joined its group yet" for part in self._parts if not part.is_ready]

    def waits(self, what: str, error: DagbokError) -> None:
        """It cannot take part: something it needs cannot be reached."""
        self._waits_for = f"{what}: {error}"

    def told(self) -> Mapping[str, object]:
        """All that is known, for people and programs."""
        partitions = [
            {
                "topic": standing.place.topic,
                "partition": standing.place.partition,
                "position": standing.position,
                "lag": _lag(standing, end),
            }
            for standing, end in self._standings
        ]
        halted = [each for part in self._parts for each in part.halted]
        return {
            "role": self.role,
            "live": not self._dead,
            "ready": not self.unready,
            "why": [*self._dead, *self.unready],
            "halted": halted,
            "partitions": partitions,
        }

    async def watch(self, settings: KafkaSettings, parts: Sequence[Part]) -> None:
        """Look after parts that have begun, until cancelled. Raises `DagbokError` (`internal_error`) when one of them
        stands still for too long; while the broker cannot be asked, nothing does."""
        self._parts, self._waits_for = parts, ""
        interval_s = min(LONGEST_INTERVAL_S, self._stall_s / 4)
        offsets, stalls = Offsets(settings), Stalls(self._stall_s)
        try:
            while True:
                try:
                    await self._look(offsets, stalls)
                except (*FAILURES, DagbokError) as error:
                    stalls.forget()
                    await offsets.close()
                    logger.info("health.broker_not_asked", error=explain(error, settings.bootstrap_servers).message)
                if self._dead:
                    raise DagbokError("; ".join(self._dead), advice="start it again: nothing is lost")
                await asyncio.sleep(interval_s)
        finally:
            await offsets.close()

    async def _look(self, offsets: Offsets, stalls: Stalls) -> None:
        found = [(part, standing) for part in self._parts for standing in await part.standings(offsets)]
        bounds = await offsets.bounds([standing.place for _, standing in found])
        ends = {place: bound.end for place, bound in bounds.items()}
        self._standings = [(standing, ends[standing.place]) for _, standing in found]
        self._dead = stalls.look([standing for _, standing in found], ends, time.monotonic())
        self._count(found, ends)
        self.metrics.checks.inc()

    def _count(self, found: Sequence[tuple[Part, Standing]], ends: Mapping[Place, int]) -> None:
        self.metrics.lag.clear()
        for part, standing in found:
            place = standing.place
            labels = {"role": part.role, "topic": place.topic, "partition": str(place.partition)}
            self.metrics.lag.labels(**labels).set(_lag(standing, ends[place]))
        held = Counter(part.role for part, _ in found)
        for part in self._parts:
            self.metrics.held.labels(role=part.role).set(held[part.role])
            part.count(self.metrics)


def _lag(standing: Standing, end: int) -> int:
    return max(0, end - (standing.position or 0))
