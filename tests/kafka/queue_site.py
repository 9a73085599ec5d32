"""The queue on a real broker, for the contract of queues."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from dagbok.agents.kafka.names import lane_topic, replies_topic
from dagbok.agents.kafka.queue import KafkaQueue
from dagbok.agents.queue import KINDS, lane_of
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.projections.artifacts.memory import MemoryBlobs
from dagbok.projections.artifacts.port import ArtifactStore
from tests.servers.kafka_session import session_kafka

SESSION_S = 1.5


async def make_topics(prefix: str, *pools: str, partitions: int = 1, replies: bool = True) -> None:
    """What the queue travels on, as `dagbok topics create` makes it."""
    admin = AIOKafkaAdminClient(bootstrap_servers=session_kafka().bootstrap)
    await admin.start()
    try:
        lanes = [lane_topic(prefix, lane_of(kind, pool)) for kind in KINDS for pool in pools]
        others = [replies_topic(prefix)] if replies else []
        await admin.create_topics([NewTopic(name, partitions, 1) for name in (*lanes, *others)])
    finally:
        await admin.close()


@asynccontextmanager
async def queue_of(
    prefix: str, process: str, *, store: ArtifactStore | None = None, session_s: float = SESSION_S
) -> AsyncIterator[KafkaQueue]:
    """The end of one process; a failure in it fails the test. `store`: for what is large, else one of its own."""
    bootstrap = session_kafka().bootstrap
    failure: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
    queue = KafkaQueue(
        KafkaSettings(bootstrap_servers=bootstrap, prefix=prefix),
        process,
        failure,
        store or ArtifactStore(MemoryBlobs()),
        session_s=session_s,
    )
    await queue.start()
    try:
        yield queue
    finally:
        await queue.close()
    assert not failure.done(), failure.result()


def new_prefix() -> str:
    """Topics of their own."""
    return f"t{secrets.token_hex(4)}."
