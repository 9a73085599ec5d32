"""How tests reach the broker of the session, and topics of their own on it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.log.kafka_thread import LoopThread
from tests.servers.kafka_fixtures import kafka_ends_with_the_session, pytest_runtest_makereport
from tests.servers.kafka_session import session_kafka

__all__ = ["kafka_ends_with_the_session", "pytest_runtest_makereport"]  # pytest finds them here

NewTopics = Callable[[str, int], Awaitable[str]]
"""Makes a topic with so many partitions, and returns its full name."""


@pytest.fixture
def status_blocks() -> None:
    """For tests of `Dagbok.status`, which is no coroutine: it reads at once what nobody has looked at before."""


@pytest.fixture(autouse=True)
def nothing_holds_up_a_loop(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Whoever asks the broker and waits for it does so in a thread: in a loop, that would stop its heartbeats."""
    if "status_blocks" in request.fixturenames:
        return
    inner = LoopThread.result

    def result(thread: LoopThread, work: Coroutine[object, object, object]) -> object:
        with suppress(RuntimeError):
            asyncio.get_running_loop()
            work.close()
            raise AssertionError("a read that blocks, in the loop")
        return inner(thread, work)

    monkeypatch.setattr(LoopThread, "result", result)


@pytest.fixture
def settings() -> KafkaSettings:
    """How to reach the broker of the session, with topics of the test's own."""
    return KafkaSettings(bootstrap_servers=session_kafka().bootstrap, prefix=f"t{secrets.token_hex(4)}.")


@pytest.fixture
def new_topic(settings: KafkaSettings) -> NewTopics:
    async def make(name: str, partitions: int) -> str:
        admin = AIOKafkaAdminClient(bootstrap_servers=settings.bootstrap_servers)
        await admin.start()
        try:
            await admin.create_topics([NewTopic(settings.prefix + name, partitions, 1)])
        finally:
            await admin.close()
        return settings.prefix + name

    return make
