"""Faust's reader, closed whatever the broker does: its own end fails in the reader's thread while no broker answers
(`dagbok.events.log.kafka_client.close_consumer`), and whoever stops it then waits for a minute."""

from __future__ import annotations

from typing import cast

import faust
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer, Transport
from mode.threads import QueueServiceThread

from dagbok.events.log import kafka_client


class _Thread(AIOKafkaConsumerThread):
    async def on_thread_stop(self) -> None:
        """As the base does it, but for how the client is closed."""
        await QueueServiceThread.on_thread_stop(self)
        if self._consumer is not None:
            await kafka_client.close_consumer(cast(kafka_client.Consumer, self._consumer))


class _Consumer(Consumer):
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
