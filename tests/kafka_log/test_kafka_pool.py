"""Cursors of a partition when opening one fails or is given up: whoever waits gets one of his own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import cast

import pytest

from dagbok.events.log import kafka_pool
from dagbok.events.log.kafka_client import Consumer, Place, place
from dagbok.events.log.kafka_pool import Pool
from dagbok.events.log.kafka_settings import KafkaSettings


class Opening:
    """Consumers that are opened when they are let, and fail as they are told."""

    def __init__(self) -> None:
        self.let_go, self.errors, self.count = asyncio.Event(), list[Exception](), 0

    async def open(self, settings: KafkaSettings, places: Sequence[Place], fetch_bytes: int) -> Consumer:
        self.count += 1
        await self.let_go.wait()
        if self.errors:
            raise self.errors.pop()
        return cast(Consumer, _Idle())


class _Idle:
    def seek(self, partition: Place, offset: int) -> None: ...

    def pause(self, *partitions: Place) -> None: ...

    async def stop(self) -> None: ...


async def test_who_waits_for_an_opening_that_was_given_up_and_fails_opens_one_himself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opening = Opening()
    monkeypatch.setattr(kafka_pool, "open_consumer", opening.open)
    pool = Pool(KafkaSettings(), place("t.events", 0), most=1, fetch_bytes=1024, ahead=False)

    async def stands_at(offset: int) -> int:
        async with pool.at(offset) as cursor:
            return cursor.position

    first = asyncio.create_task(stands_at(3))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    second = asyncio.create_task(stands_at(5))
    await asyncio.sleep(0)
    opening.errors.append(OSError("no broker"))
    opening.let_go.set()
    assert await second == 5
    assert opening.count == 2
    assert await stands_at(5) == 5
    await pool.close()
