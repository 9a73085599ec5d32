"""What a projector counts is counted, however often its partition is begun anew."""

from __future__ import annotations

from typing import cast

import pytest

from dagbok.agents.kafka import projector as module
from dagbok.agents.kafka.metrics import Metrics
from dagbok.agents.kafka.parts import ProjectorPart
from dagbok.agents.kafka.projector import ProjectorService
from dagbok.events.errors import StorageFailed
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.log.port import Log
from dagbok.projections.feed import Progress
from dagbok.projections.store import Tables


class Fails:
    """A projector that writes so many events, and then its database is away."""

    events = 0

    def __init__(self, *_: object) -> None:
        self.progress = Progress()

    async def catch_up(self) -> None:
        self.progress.commits += 1
        self.progress.events += self.events
        self.progress.void += 1
        raise StorageFailed("the database is away")


async def test_nothing_is_lost_of_a_count_when_a_partition_is_begun_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looked in between; and what began anew has come past what the one before it had."""
    monkeypatch.setattr(module, "Group", lambda *_, **__: None)
    monkeypatch.setattr(module, "Projector", Fails)
    service = ProjectorService(KafkaSettings(), cast(Log, None), cast(Tables, None))
    part, metrics = ProjectorPart(service, ""), Metrics("projector")
    for events in (5, 2, 9):
        monkeypatch.setattr(Fails, "events", events)
        with pytest.raises(StorageFailed):
            await service._project(3)
    assert service.progress == {3: Progress(commits=3, events=16, void=3)}
    part.count(metrics)
    part.count(metrics)
    labels = {"partition": "3"}
    assert metrics.registry.get_sample_value("dagbok_projected_events_total", labels) == 16
    assert metrics.registry.get_sample_value("dagbok_void_commits_total", labels) == 3
