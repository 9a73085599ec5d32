"""The parts of a process that read partitions: how far each is, and what is counted of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from dagbok.agents.kafka.metrics import Metrics, Totals
from dagbok.agents.kafka.names import lane_group, lane_topic, replies_topic
from dagbok.agents.kafka.offsets import Offsets
from dagbok.agents.kafka.projector import ProjectorService
from dagbok.agents.kafka.queue import KafkaQueue
from dagbok.agents.kafka.scheduler import Scheduler
from dagbok.agents.kafka.stalls import Standing
from dagbok.events.log.kafka_client import Place
from dagbok.events.log.port import COMMANDS, EVENTS


class Part(Protocol):
    """`role` is its name in metrics."""

    @property
    def role(self) -> str: ...

    @property
    def is_ready(self) -> bool:
        """It takes part in its groups."""
        ...

    @property
    def halted(self) -> Sequence[str]:
        """What going on would be wrong with, and why."""
        ...

    async def standings(self, offsets: Offsets) -> Sequence[Standing]:
        """How far it is in each partition that it has. Raises what `kafka_errors.FAILURES` has."""
        ...

    def count(self, metrics: Metrics) -> None:
        """Bring the metrics of it up to date."""
        ...


class SchedulerPart:
    """Decides."""

    role = "scheduler"

    def __init__(self, scheduler: Scheduler, prefix: str) -> None:
        self._scheduler, self._topic = scheduler, prefix + COMMANDS

    @property
    def is_ready(self) -> bool:
        return self._scheduler.group.joined.is_set()

    @property
    def halted(self) -> Sequence[str]:
        return [f"{self._topic}[{number}]: {error}" for number, error in sorted(self._scheduler.halted.items())]

    async def standings(self, offsets: Offsets) -> Sequence[Standing]:
        return [self._standing(number) for number in sorted(self._scheduler.group.partitions)]

    def _standing(self, number: int) -> Standing:
        deciding = self._scheduler.deciding(number)
        position = None if deciding is None else deciding.owner.state.position.last_command_offset + 1
        return Standing(Place(self._topic, number), position, number in self._scheduler.excused)

    def count(self, metrics: Metrics) -> None:
        metrics.halted.labels(role=self.role).set(len(self._scheduler.halted))


class ProjectorPart:
    """Writes the tables."""

    role = "projector"

    def __init__(self, projector: ProjectorService, prefix: str) -> None:
        self._projector, self._topic = projector, prefix + EVENTS
        self._totals = Totals()

    @property
    def is_ready(self) -> bool:
        return self._projector.group.joined.is_set()

    @property
    def halted(self) -> Sequence[str]:
        return [f"{self._topic}[{number}]: {error}" for number, error in sorted(self._projector.halted.items())]

    async def standings(self, offsets: Offsets) -> Sequence[Standing]:
        excused = await self._projector.excused()
        found = []
        for number in sorted(self._projector.group.partitions):
            projector = self._projector.projecting.get(number)
            position = None if projector is None else projector.position.next_offset
            found.append(Standing(Place(self._topic, number), position, number in excused))
        return found

    def count(self, metrics: Metrics) -> None:
        metrics.halted.labels(role=self.role).set(len(self._projector.halted))
        for number, progress in self._projector.progress.items():
            labels = {"partition": str(number)}
            self._totals.follow(metrics.void_commits, progress.void, labels)
            self._totals.follow(metrics.projected, progress.events, labels)


class QueuePart:
    """Takes what its pools are sent, if it serves any, and sends."""

    halted: Sequence[str] = ()

    def __init__(self, queue: KafkaQueue, prefix: str, role: str) -> None:
        self.role, self._queue, self._prefix = role, queue, prefix
        self._totals = Totals()

    @property
    def is_ready(self) -> bool:
        return all(reader.joined for reader in self._queue.readers.values())

    async def standings(self, offsets: Offsets) -> Sequence[Standing]:
        found: list[Standing] = []
        for lane, reader in tuple(self._queue.readers.items()):
            topic = lane_topic(self._prefix, lane)
            places = [Place(topic, number) for number in sorted(reader.partitions)]
            starts = await offsets.bounds(places)
            done = await offsets.done(lane_group(self._prefix, lane)) if places else {}
            busy = self._queue.is_busy(lane)
            # What nobody took and the broker has removed by its age comes no more.
            found += [Standing(place, max(done.get(place, 0), starts[place].start), busy) for place in places]
        return found

    def count(self, metrics: Metrics) -> None:
        self._totals.follow(metrics.not_sent, self._queue.lost)
        self._totals.follow(metrics.garbage, self._queue.reply_garbage, {"topic": replies_topic(self._prefix)})
        for lane, reader in self._queue.readers.items():
            self._totals.follow(metrics.garbage, reader.garbage, {"topic": lane_topic(self._prefix, lane)})
