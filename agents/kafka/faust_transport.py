"""Faust's reader, mended where it loses something.

It is closed whatever the broker does: its own end fails in the reader's thread while no broker answers
(`dagbok.events.log.kafka_client.close_consumer`), and whoever stops it then waits for a minute. And it is closed once,
by its own thread, also when a rebalance catches it at its end: Faust then marks its client as closed and tries to close
it from another event loop, which fails; its connections stay open, and its group waits for the session to run out.

What it fetches while a rebalance holds its flow is handed out afterwards. Faust drops such records and seeks to what
the group has acknowledged; where that is nothing yet, aiokafka does not seek, and nobody reads them before the next
rebalance.

What it acknowledges ends before the first record that is not done with. Faust looks for that one only between those
that are: the very first of a partition, or the one that follows what is acknowledged, it passes over, and whoever takes
the partition over from a process that died is not given it.

What cannot be read comes as an empty record. Faust ends at a header whose name is no text, and so does every process
that is given the partition.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, cast

import aiokafka
import faust
from faust.transport.consumer import RecordMap
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer, Transport
from faust.types import TP
from faust.types.tuples import ConsumerMessage
from mode.threads import QueueServiceThread

from dagbok.events.log import kafka_client
from dagbok.events.log.kafka_unreadable import PastUnreadable

FETCH_WAIT_MS: Final = 200
"""How long a broker holds a fetch back when nothing is there. A fetch that begins while records of a partition wait to
be handed out leaves that partition out, and what comes there then waits for the end of the fetch."""


class _Thread(AIOKafkaConsumerThread):
    def __init__(self, *args: Any, **named: Any) -> None:
        self._past = PastUnreadable()
        super().__init__(*args, **named)

    async def on_thread_stop(self) -> None:
        """As the base does it, but for how the client is closed."""
        await QueueServiceThread.on_thread_stop(self)
        if self._consumer is not None:
            await kafka_client.close_consumer(cast(kafka_client.Consumer, self._consumer))

    def close(self) -> None:
        """Nothing: called only at the end, and `on_thread_stop` does it."""

    def _create_worker_consumer(self, transport: Transport) -> aiokafka.AIOKafkaConsumer:
        consumer = super()._create_worker_consumer(transport)
        consumer._fetch_max_wait_ms = FETCH_WAIT_MS
        return consumer

    async def _fetch_records(
        self,
        consumer: aiokafka.AIOKafkaConsumer,
        active_partitions: set[TP],
        timeout: float | None = None,  # noqa: ASYNC109 – the base's name
        max_records: int | None = None,
    ) -> RecordMap:
        """As the base does it, past what cannot be read; while the flow is held, nothing, and the position stays in
        front of what was there. A flow that is held only later is no harm: the partitions are assigned anew before it
        goes on."""

        async def fetch(places: Collection[TP], wait_s: float, most: int | None) -> RecordMap:
            return await fetch_as_base(consumer, set(places), wait_s, most)

        fetch_as_base = super()._fetch_records
        fetched: RecordMap = await self._past.fetch(consumer, fetch, active_partitions, timeout or 0, max_records)
        if self.consumer.flow_active:
            return fetched
        assigned = consumer.assignment()
        for place, records in fetched.items():
            if place in assigned:
                consumer.seek(place, records[0].offset)
        return {}


class _Consumer(Consumer):
    def __init__(self, *args: Any, **named: Any) -> None:
        self._first: dict[TP, int] = {}
        """By partition, the first offset that was handed out since it was assigned."""
        super().__init__(*args, **named)

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """As the base does it."""
        for place in revoked:
            self._first.pop(place, None)
        await super().on_partitions_revoked(revoked)

    def _to_message(self, tp: TP, record: Any) -> ConsumerMessage:
        message = super()._to_message(tp, record)
        self._first.setdefault(tp, message.offset)
        return message

    def _new_offset(self, tp: TP) -> int | None:
        """The offset to acknowledge; none when the next record is not done with."""
        acked, first = self._acked[tp], self._first.get(tp)
        if first is None or (acked and min(acked) > max(first, self._committed_offset[tp] or 0)):
            return None
        return super()._new_offset(tp)

    def _new_consumer_thread(self) -> AIOKafkaConsumerThread:
        return _Thread(self, loop=self.loop, beacon=self.beacon)


class _Transport(Transport):
    Consumer = _Consumer


def use_it(app: faust.App) -> None:
    """Have `app`, which has not started, read by this."""
    app.transport = _Transport(app.conf.broker_consumer, app)


def let_go(app: faust.App) -> None:
    """Of an application that could not start and was stopped: its reader's thread never ran, and only a thread closes
    the loop that was made for it."""
    loop = cast(_Consumer, app.consumer)._thread.thread_loop
    if not loop.is_running():
        loop.close()
