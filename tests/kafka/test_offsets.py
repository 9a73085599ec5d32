"""Asking a broker for offsets while there is none: each question says so, and leaves nothing open."""

from __future__ import annotations

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaConnectionError

from dagbok.agents.kafka.offsets import Offsets
from dagbok.events.log.kafka_client import place
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.log.port import Bounds


async def test_a_question_that_found_no_broker_is_asked_anew_by_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    offsets = Offsets(KafkaSettings(bootstrap_servers="127.0.0.1:1", request_timeout_s=1.0))
    asked = place("t.events", 0)
    for _ in range(2):
        with pytest.raises(KafkaConnectionError):
            await offsets.bounds([asked])

    async def starts(consumer: AIOKafkaConsumer) -> None:
        """The broker is there."""

    async def finds(consumer: AIOKafkaConsumer, places: list[object]) -> dict[object, int]:
        return dict.fromkeys(places, 7)

    for name, does in (("start", starts), ("beginning_offsets", finds), ("end_offsets", finds)):
        monkeypatch.setattr(AIOKafkaConsumer, name, does)
    assert await offsets.bounds([asked]) == {asked: Bounds(7, 7)}
    await offsets.close()
