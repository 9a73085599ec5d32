"""The slots of snapshots on a broker that goes away in the middle of a manifest."""

from __future__ import annotations

import asyncio
import time

import pytest

from dagbok.agents.kafka import slots
from dagbok.agents.kafka.slots import KafkaSlots
from dagbok.events.codes import Code
from dagbok.events.errors import LogError
from dagbok.events.log.kafka_client import Producer, open_producer
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.log.kafka_thread import LoopThread
from dagbok.events.log.kafka_topics import create, declared
from tests.servers.kafka_broker import Broker
from tests.servers.kafka_topics import fresh_prefix, settings_of

REQUEST_S = 1.0
GIVEN_UP_S = 10.0
"""Far more than twice a request and the end of a producer, far less than without end."""


@pytest.mark.slow
async def test_a_manifest_is_given_up_when_its_broker_dies_and_is_written_when_it_is_back(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(fresh_prefix(), broker.bootstrap, request_timeout_s=str(REQUEST_S))
    (topic,) = [topic for topic in declared(settings.prefix, 1) if topic.name == f"{settings.prefix}snapshots"]
    assert await create(settings, [topic])
    thread = LoopThread("test")
    kept = KafkaSlots(settings, 0, thread)
    await asyncio.to_thread(kept.write, 0, b"before")

    async def open_and_lose(settings: KafkaSettings) -> Producer:
        opened = await open_producer(settings)
        await asyncio.to_thread(broker.kill)
        return opened

    with monkeypatch.context() as lost:
        lost.setattr(slots, "open_producer", open_and_lose)
        began_s = time.monotonic()
        with pytest.raises(LogError) as failed:
            await asyncio.to_thread(kept.write, 1, b"lost")
    assert failed.value.code == Code.LOG_UNREACHABLE
    assert time.monotonic() - began_s < GIVEN_UP_S

    await asyncio.to_thread(broker.start)
    await asyncio.to_thread(kept.write, 1, b"after")
    assert await asyncio.to_thread(kept.read) == [b"before", b"after"]
    await asyncio.to_thread(kept.clear, 0)
    assert await asyncio.to_thread(kept.read) == [b"after"]
    await thread.close()
