"""The writer of a partition on a producer that is none: what is in doubt, what shares a batch, what is never sent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import pytest
from aiokafka.errors import KafkaTimeoutError

from dagbok.agents.scheduler.owner import error_is_doubt
from dagbok.events.errors import LogError
from dagbok.events.log import kafka_producers, kafka_sizes
from dagbok.events.log.kafka_client import Batch, Landed, place
from dagbok.events.log.kafka_producers import Producers
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.log.kafka_writer import Writer
from tests.contract.reading import records


@dataclass
class FakeBatch:
    values: list[bytes] = field(default_factory=list)

    def append(
        self, *, timestamp: None, key: bytes, value: bytes, headers: Sequence[tuple[str, bytes]]
    ) -> object | None:
        self.values.append(value)
        return self

    def close(self) -> None: ...


@dataclass
class At:
    offset: int


class Broker:
    """Takes batches of all producers. `answers`: what the next batches are answered with; then where they land."""

    def __init__(self) -> None:
        self.batches: list[list[bytes]] = []
        self.producers = 0
        self.abandoned = 0
        self.answers: list[int | Exception] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def open(self, settings: KafkaSettings) -> FakeProducer:
        self.producers += 1
        return FakeProducer(self)

    async def abandon(self, producer: FakeProducer) -> None:
        self.abandoned += 1


@dataclass
class FakeProducer:
    broker: Broker

    def create_batch(self) -> Batch:
        return FakeBatch()

    async def send_batch(self, batch: Batch, topic: str, *, partition: int) -> Awaitable[Landed]:
        assert isinstance(batch, FakeBatch)
        await self.broker.gate.wait()
        first = sum(map(len, self.broker.batches))
        self.broker.batches.append(batch.values)
        answer = self.broker.answers.pop(0) if self.broker.answers else first
        landed: asyncio.Future[Landed] = asyncio.get_running_loop().create_future()
        if isinstance(answer, Exception):
            landed.set_exception(answer)
        else:
            landed.set_result(At(answer))
        return landed

    async def stop(self) -> None: ...


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    broker = Broker()
    monkeypatch.setattr(kafka_producers, "open_producer", broker.open)
    monkeypatch.setattr(kafka_producers, "abandon", broker.abandon)
    return broker


@pytest.fixture
def writer(broker: Broker) -> Writer:
    return make_writer()


def make_writer(timeout_s: float = 10, moved: Callable[[int], None] = lambda end: None) -> Writer:
    return Writer(Producers(KafkaSettings()), place("t", 0), "events[0]", timeout_s, moved)


@pytest.mark.parametrize("answer", [-1, KafkaTimeoutError(), OSError("reset")])
async def test_an_answer_that_does_not_say_where_is_doubt_and_the_next_append_takes_another_producer(
    broker: Broker, writer: Writer, answer: int | Exception
) -> None:
    await writer.append(records(b"a"))
    broker.answers = [answer]

    with pytest.raises(LogError) as doubt:
        await writer.append(records(b"b"))
    assert error_is_doubt(doubt.value)
    assert await writer.append(records(b"c")) == 2
    assert (broker.producers, broker.abandoned) == (2, 1)


async def test_a_broker_that_does_not_answer_in_time_leaves_doubt(broker: Broker) -> None:
    writer = make_writer(timeout_s=0.01)
    broker.gate.clear()
    with pytest.raises(LogError) as doubt:
        await writer.append(records(b"a"))
    assert error_is_doubt(doubt.value)

    broker.gate.set()
    assert await writer.append(records(b"b")) == 0
    assert broker.batches == [[b"b"]]


async def test_appends_that_wait_together_share_a_batch_and_each_learns_where_its_own_begin(broker: Broker) -> None:
    ends: list[int] = []
    writer = make_writer(moved=ends.append)
    broker.gate.clear()
    appends = [asyncio.ensure_future(writer.append(records(*[b"%d" % name] * (name + 1)))) for name in range(4)]
    await asyncio.sleep(0)
    broker.gate.set()

    assert await asyncio.gather(*appends) == [0, 1, 3, 6]
    assert broker.batches[0] == [b"0", b"1", b"1", b"2", b"2", b"2", b"3", b"3", b"3", b"3"]
    assert ends == [10]


async def test_large_appends_go_alone(broker: Broker, writer: Writer) -> None:
    large = bytes(kafka_sizes.SHARED_BYTES)
    await asyncio.gather(*(writer.append(records(value)) for value in (b"a", large, b"b", b"c")))

    assert [len(batch) for batch in broker.batches] == [1, 1, 2]


async def test_all_who_share_a_batch_that_fails_are_in_doubt_and_nobody_else(broker: Broker, writer: Writer) -> None:
    broker.answers = [KafkaTimeoutError()]
    large = bytes(kafka_sizes.SHARED_BYTES)
    outcomes = await asyncio.gather(
        *(writer.append(records(value)) for value in (b"a", b"b", large)), return_exceptions=True
    )

    assert [isinstance(outcome, LogError) for outcome in outcomes] == [True, True, False]


async def test_who_is_cancelled_before_its_batch_is_made_sends_nothing(broker: Broker, writer: Writer) -> None:
    broker.gate.clear()
    first = asyncio.ensure_future(writer.append(records(b"first")))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    gone, kept = (asyncio.ensure_future(writer.append(records(value))) for value in (b"gone", b"kept"))
    await asyncio.sleep(0)
    gone.cancel()
    broker.gate.set()

    assert (await first, await kept) == (0, 1)
    assert broker.batches == [[b"first"], [b"kept"]]
