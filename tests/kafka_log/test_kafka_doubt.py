"""A broker that dies or stands still while it is written to: what is in doubt is said to be, and reading tells."""

from __future__ import annotations

import asyncio
import logging

import pytest

from dagbok.agents.scheduler.owner import error_is_doubt
from dagbok.events.codes import Code
from dagbok.events.errors import LogError, StorageFailed
from dagbok.events.log.kafka import KafkaLog
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.log.port import EVENTS, Record
from tests.contract.reading import read_all, records, values_of
from tests.servers.kafka_broker import Broker
from tests.servers.kafka_topics import create_log_topics, fresh_prefix, settings_of


async def log_on(broker: Broker, **more: str) -> KafkaLog:
    settings = settings_of(fresh_prefix(), broker.bootstrap, **more)
    await create_log_topics(settings)
    return await KafkaLog.open(settings)


def batch(name: int) -> list[Record]:
    return records(*(b"%d/%d" % (name, part) for part in range(3)))


async def until_answered(log: KafkaLog) -> None:
    """Read until the broker is back."""
    async with asyncio.timeout(60):
        while True:
            try:
                await log.bounds(EVENTS, 0)
                return
            except LogError as error:
                if error.code != Code.LOG_UNREACHABLE:
                    raise
            await asyncio.sleep(0.05)


@pytest.mark.slow
async def test_a_broker_killed_among_appends_leaves_doubt_and_the_log_tells_what_is_there(broker: Broker) -> None:
    log = await log_on(broker, request_timeout_s="1")
    landed: dict[int, int] = {}
    doubtful: list[tuple[int, LogError]] = []
    enough = asyncio.Event()

    async def appender(first: int) -> None:
        for name in range(first, first + 10_000):
            try:
                landed[name] = await log.append(EVENTS, 0, batch(name))
            except LogError as error:
                doubtful.append((name, error))
                return
            if len(landed) > 50:
                enough.set()

    appending = [asyncio.ensure_future(appender(first)) for first in (0, 10_000, 20_000, 30_000)]
    await enough.wait()
    await asyncio.to_thread(broker.kill)
    await asyncio.gather(*appending)
    assert len(doubtful) == 4
    assert all(error_is_doubt(error) and error.code == Code.LOG_UNREACHABLE for _, error in doubtful)

    await asyncio.to_thread(broker.start)
    await until_answered(log)
    after = await log.append(EVENTS, 0, records(b"after"))
    found = await read_all(log, EVENTS, 0)

    assert [record.offset for record in found] == list(range(after + 1))
    by_offset = {record.offset: record.value for record in found}
    assert all(
        by_offset[offset + part] == b"%d/%d" % (name, part) for name, offset in landed.items() for part in (0, 1, 2)
    )
    for name, _ in doubtful:
        assert sum(record.value == b"%d/0" % name for record in found) <= 1
    assert len(found) % 3 == 1  # batches are whole
    await log.close()


@pytest.mark.slow
async def test_an_append_that_a_broker_took_and_did_not_confirm_in_time_is_sent_again_and_stands_once(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    log = await log_on(broker, request_timeout_s="3")
    first = await log.append(EVENTS, 0, batch(0))
    sent_again = asyncio.Event()
    handler = _Tells("Got error produce response", sent_again)
    logging.getLogger("aiokafka").addHandler(handler)
    try:
        broker.pause()
        appending = asyncio.ensure_future(log.append(EVENTS, 0, batch(1)))
        await sent_again.wait()
        broker.resume()
        second = await appending
    finally:
        broker.resume()
        logging.getLogger("aiokafka").removeHandler(handler)
    third = await log.append(EVENTS, 0, batch(2))

    assert (first, second, third) == (0, 3, 6)
    assert values_of(await read_all(log, EVENTS, 0)) == [
        b"%d/%d" % (name, part) for name in range(3) for part in range(3)
    ]
    await log.close()


@pytest.mark.slow
async def test_an_append_on_which_a_broker_is_silent_is_given_up_and_the_next_one_is_written(broker: Broker) -> None:
    log = await log_on(broker, request_timeout_s="0.4")
    await log.append(EVENTS, 0, batch(0))
    broker.pause()
    try:
        with pytest.raises(LogError) as doubt:
            await log.append(EVENTS, 0, batch(1))
    finally:
        broker.resume()
    assert doubt.value.code == Code.LOG_UNREACHABLE

    await until_answered(log)
    async with asyncio.timeout(60):
        while not await _appended(log, batch(2)):
            pass
    found = values_of(await read_all(log, EVENTS, 0))
    assert found.count(b"1/0") <= 1
    assert found[-1] == b"2/2"
    await log.close()


@pytest.mark.slow
async def test_who_waits_sits_out_an_outage(broker: Broker) -> None:
    log = await log_on(broker, request_timeout_s="1")
    await log.append(EVENTS, 0, batch(0))
    waiting = asyncio.ensure_future(log.wait(EVENTS, 0, 3))
    assert not await log.wait(EVENTS, 0, 3, timeout_s=0.2)  # it asks behind the other one, which waits now

    await asyncio.to_thread(broker.kill)
    await asyncio.to_thread(broker.start)
    await until_answered(log)
    assert not waiting.done()
    await log.append(EVENTS, 0, batch(1))

    async with asyncio.timeout(60):
        assert await waiting
    assert values_of(await log.read(EVENTS, 0, 3, 3)) == [b"1/0", b"1/1", b"1/2"]
    await log.close()


@pytest.mark.slow
async def test_a_log_whose_broker_is_gone_says_so_within_its_time_and_closes(broker: Broker) -> None:
    log = await log_on(broker, request_timeout_s="0.5")
    offset = await log.append(EVENTS, 0, batch(0))
    await asyncio.to_thread(broker.kill)

    async with asyncio.timeout(30):
        for call in (log.append(EVENTS, 0, batch(1)), log.bounds(EVENTS, 0), log.read(EVENTS, 0, offset, 10)):
            with pytest.raises(LogError) as told:
                await call
            assert told.value.code == Code.LOG_UNREACHABLE
            assert "look whether the brokers run" in str(told.value)
        with pytest.raises(LogError):
            await asyncio.to_thread(log.value_at, EVENTS, 0, offset)
        await log.close()


async def test_a_log_cannot_be_opened_where_nobody_listens_or_the_topics_are_missing(broker: Broker) -> None:
    settings = settings_of(fresh_prefix(), broker.bootstrap)
    with pytest.raises(StorageFailed, match="dagbok topics create"):
        await KafkaLog.open(settings)

    with pytest.raises(LogError) as told:
        await KafkaLog.open(KafkaSettings(bootstrap_servers="127.0.0.1:1", request_timeout_s=1))
    assert told.value.code == Code.LOG_UNREACHABLE


class _Tells(logging.Handler):
    """Sets an event when a message begins with `start`."""

    def __init__(self, start: str, event: asyncio.Event) -> None:
        super().__init__()
        self._start, self._event = start, event

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage().startswith(self._start):
            self._event.set()


async def _appended(log: KafkaLog, wanted: list[Record]) -> bool:
    try:
        await log.append(EVENTS, 0, wanted)
        return True
    except LogError:
        return False
