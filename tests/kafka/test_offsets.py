"""Asking a broker for offsets while there is none: each question says so, and leaves nothing open."""

from __future__ import annotations

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import GroupCoordinatorNotAvailableError, KafkaConnectionError

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


async def test_groups_that_a_fresh_broker_does_not_have_yet_are_waited_for_but_not_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    missing = 2

    async def starts(_admin: AIOKafkaAdminClient) -> None:
        """The broker is there."""

    async def finds(_admin: AIOKafkaAdminClient, group: str) -> dict[object, object]:
        asked.append(group)
        if len(asked) <= missing:
            raise GroupCoordinatorNotAvailableError(group)
        return {}

    monkeypatch.setattr(AIOKafkaAdminClient, "start", starts)
    monkeypatch.setattr(AIOKafkaAdminClient, "list_consumer_group_offsets", finds)
    settings = KafkaSettings(retry_backoff_s=0.001)
    patient = Offsets(settings, groups_s=30.0)
    assert await patient.done("g") == {}
    assert len(asked) == missing + 1
    asked.clear()
    with pytest.raises(GroupCoordinatorNotAvailableError):
        await Offsets(settings).done("g")
    assert len(asked) == 1
