"""What a process sends that may be lost: dispatches, hints and answers. Whoever puts them does not wait."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from typing import Final

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from dagbok.agents.kafka.routes import Letter, Routes
from dagbok.events.log.kafka_client import close_producer
from dagbok.events.log.kafka_options import client_options
from dagbok.events.log.kafka_settings import KafkaSettings

logger = structlog.get_logger(__name__)

MOST_WAITING: Final = 50_000
"""While the broker cannot be reached the oldest go. Dispatches are repeated by their scheduler, and an answer is asked
for again."""
MOST_IN_FLIGHT: Final = 2_000
CLOSE_S: Final = 1.0
"""So long what waits may be sent at the end."""


class Sending:
    """One producer. `max_bytes`: of the largest record."""

    def __init__(self, settings: KafkaSettings, *, max_bytes: int) -> None:
        self._producer = AIOKafkaProducer(
            **client_options(settings), acks=1, compression_type="lz4", linger_ms=0, max_request_size=max_bytes
        )
        self._routes = Routes(self._producer.client, self._routed, time.monotonic)
        self._waiting: deque[Letter] = deque()
        self._filled = asyncio.Event()
        self._in_flight = asyncio.Semaphore(MOST_IN_FLIGHT)
        self.lost = 0
        """How many records were not sent."""

    def put(self, letter: Letter) -> None:
        """Send it soon."""
        if len(self._waiting) >= MOST_WAITING:
            self._waiting.popleft()
            self._lose("the broker is behind")
        self._waiting.append(letter)
        self._filled.set()

    async def start(self) -> None:
        """Connect. Raises `KafkaError`."""
        await self._producer.start()

    async def partitions_of(self, topic: str) -> int:
        """Raises `KafkaError` when there is no such topic."""
        return len(await self._producer.partitions_for(topic))

    def has_topic(self, topic: str) -> bool:
        """Whether there is one, as far as this process has had anything to send there."""
        return self._routes.is_there(topic)

    async def route(self) -> None:
        """Look for topics that are not known yet, until cancelled. What is sent to others does not wait for it."""
        await self._routes.run()

    async def run(self) -> None:
        """Send what is put, until cancelled."""
        while True:
            await self._filled.wait()
            self._filled.clear()
            while self._waiting:
                await self._send_next()

    async def close(self) -> None:
        """Send what waits, as far as that is possible in a moment, and let go."""
        try:
            async with asyncio.timeout(CLOSE_S):
                while self._waiting:
                    await self._send_next()
        except TimeoutError:
            self.lost += len(self._waiting)
        await close_producer(self._producer)

    def _routed(self, letters: Sequence[Letter]) -> None:
        """They go before what was put later."""
        self._waiting.extendleft(reversed(letters))
        self._filled.set()

    async def _send_next(self) -> None:
        await self._in_flight.acquire()
        letter = self._waiting.popleft()
        if self._routes.is_open(letter.topic):
            await self._send(letter)
        else:
            self._in_flight.release()
            self._routes.keep(letter)

    async def _send(self, letter: Letter) -> None:
        """The topic is known: the client would wait for one that is not, and with it all that is to go elsewhere."""
        try:
            # No key: the client spreads them over the partitions.
            sent = await self._producer.send(
                letter.topic, letter.value, partition=letter.partition, headers=list(letter.headers)
            )
        except KafkaError as error:
            self._in_flight.release()
            self._lose(f"{letter.topic}: {error!r}")
        except BaseException:
            self._in_flight.release()
            raise
        else:
            sent.add_done_callback(self._sent)

    def _sent(self, sent: asyncio.Future[object]) -> None:
        self._in_flight.release()
        if not sent.cancelled() and (error := sent.exception()) is not None:
            self._lose(repr(error))

    def _lose(self, why: str) -> None:
        self.lost += 1
        if self.lost & (self.lost - 1) == 0:  # the first, and then ever more rarely
            logger.warning("queue.not_sent", lost=self.lost, why=why)
