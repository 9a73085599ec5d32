"""The clients of aiokafka, which carries no types, behind the few methods that the log uses: no other module of the log
makes one. Groups, the queue and administration have clients with other settings and make their own, all of them from
`client_options`; the queue and groups close them by what is here.

Each `open_*` connects, and leaves nothing open when it fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, cast

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import OffsetOutOfRangeError

from dagbok.events.log import kafka_sizes as sizes
from dagbok.events.log.kafka_options import client_options
from dagbok.events.log.kafka_settings import KafkaSettings

FETCH_WAIT_S: Final = 0.5
"""How long a broker holds a fetch back when nothing is there. A seek meanwhile waits for its end."""
ABANDON_S: Final = 1.0
CLOSE_S: Final = 2.0
"""So long a client may take to close in order: it waits for answers that a broker that is gone will not give."""

OutOfRange: Final = OffsetOutOfRangeError


class Place(NamedTuple):
    """A partition of a topic, by its full name. Equal to aiokafka's own pair."""

    topic: str
    partition: int


class Landed(Protocol):
    """Where a batch is: the offset of its first record, or -1 when the broker had it already."""

    offset: int


class Fetched(Protocol):
    """A record as a broker gives it."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


class Batch(Protocol):
    def append(
        self, *, timestamp: None, key: bytes, value: bytes, headers: Sequence[tuple[str, bytes]]
    ) -> object | None: ...

    def close(self) -> None: ...


class Producer(Protocol):
    def create_batch(self) -> Batch: ...

    async def send_batch(self, batch: Batch, topic: str, *, partition: int) -> Awaitable[Landed]: ...

    async def stop(self) -> None: ...


class Consumer(Protocol):
    def seek(self, partition: Place, offset: int) -> None: ...

    def pause(self, *partitions: Place) -> None: ...

    def resume(self, *partitions: Place) -> None: ...

    def highwater(self, partition: Place) -> int | None: ...

    async def getmany(self, *partitions: Place, timeout_ms: int, max_records: int) -> Mapping[Place, list[Fetched]]: ...

    async def beginning_offsets(self, partitions: Iterable[Place]) -> Mapping[Place, int]: ...

    async def end_offsets(self, partitions: Iterable[Place]) -> Mapping[Place, int]: ...

    async def stop(self) -> None: ...


def place(topic: str, partition: int) -> Place:
    """As aiokafka wants it: it asks for its own type."""
    return cast(Place, TopicPartition(topic, partition))


async def open_producer(settings: KafkaSettings) -> Producer:
    """Writes durably and in order: `acks=all`, idempotent, one request at a time for each partition."""
    producer = AIOKafkaProducer(
        **client_options(settings),
        acks="all",
        enable_idempotence=True,
        linger_ms=0,
        compression_type=None if settings.compression == "none" else settings.compression,
        max_batch_size=sizes.BATCH_BYTES + sizes.HEADER_BYTES,
        max_request_size=sizes.REQUEST_BYTES,
    )
    try:
        async with asyncio.timeout(2 * settings.request_timeout_s):
            await producer.start()
    except BaseException:
        await producer.stop()
        raise
    return cast(Producer, producer)


async def abandon(producer: Producer) -> None:
    """Close a producer without sending what it still holds; `stop` would wait for that, without end when the broker is
    gone."""
    inner = cast("_Inner", producer)
    inner._closed = True
    task = inner._sender.sender_task
    task.cancel()
    await inner.client.close()
    # Cancelled once, the sender waits for its requests; their connections are closed now, but one may wait for metadata
    # that nobody will bring.
    await asyncio.wait([task], timeout=ABANDON_S)
    if not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=ABANDON_S)
    if task.done() and not task.cancelled():
        task.exception()  # looked at: nobody else will


async def close_producer(producer: Producer) -> None:
    """Send what it holds and close it; without sending when that takes too long."""
    if not await _done_in_time(producer.stop()):
        await abandon(producer)


async def close_consumer(consumer: Consumer, within_s: float = CLOSE_S) -> None:
    """Close it, whatever its broker does. While no broker answers, aiokafka's own end stops half way: it raises the
    cancellation of a fetch that it has cancelled itself, and leaves its connections open."""
    if await _done_in_time(consumer.stop(), within_s):
        return
    inner = cast("_InnerConsumer", consumer)
    working = set(inner._fetcher._pending_tasks) if inner._fetcher is not None else set()
    for part in filter(None, (inner._fetcher, inner._coordinator)):
        working |= {task for task in vars(part).values() if isinstance(task, asyncio.Task)}
    for task in working:
        task.cancel()
    if working:
        await asyncio.wait(working, timeout=ABANDON_S)
    await inner._client.close()


async def _done_in_time(closing: Coroutine[object, object, None], within_s: float = CLOSE_S) -> bool:
    task = asyncio.ensure_future(closing)
    await asyncio.wait([task], timeout=within_s)
    if not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=ABANDON_S)
        return False
    return not task.cancelled() and task.exception() is None


async def open_consumer(settings: KafkaSettings, places: Sequence[Place], fetch_bytes: int) -> Consumer:
    """Reads `places` without a group; it is paused and stands at their offset 0. It is connected to whoever leads them:
    aiokafka leaks a connection that is given up while it is being made."""
    consumer = AIOKafkaConsumer(
        **client_options(settings),
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="none",
        client_rack=settings.client_rack,
        fetch_max_wait_ms=int(FETCH_WAIT_S * 1000),
        fetch_max_bytes=fetch_bytes,
        max_partition_fetch_bytes=fetch_bytes,
        consumer_timeout_ms=1000,
    )
    try:
        await consumer.start()
        consumer.assign(places)
        consumer.pause(*places)
        for found in places:
            consumer.seek(found, 0)
        await consumer.end_offsets(places)
    except BaseException:
        await close_consumer(consumer)
        raise
    return cast(Consumer, consumer)


class _Sender(Protocol):
    sender_task: asyncio.Task[None]


class _Client(Protocol):
    async def close(self) -> None: ...


class _Inner(Protocol):
    """What `abandon` has to reach inside of a producer."""

    _closed: bool
    _sender: _Sender
    client: _Client


class _Fetcher(Protocol):
    _pending_tasks: set[asyncio.Task[object]]


class _InnerConsumer(Protocol):
    """What `close_consumer` has to reach inside of a consumer."""

    _fetcher: _Fetcher | None
    _coordinator: object | None
    _client: _Client
