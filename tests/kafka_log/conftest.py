"""Logs on the broker of the session, and a broker that a test may kill."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from dagbok.events.log.kafka import KafkaLog
from tests.servers.kafka_broker import Broker
from tests.servers.kafka_fixtures import kafka_ends_with_the_session, pytest_runtest_makereport
from tests.servers.kafka_topics import create_log_topics, fresh_prefix, settings_of

__all__ = ["kafka_ends_with_the_session", "pytest_runtest_makereport"]  # pytest finds them here


@pytest.fixture
async def log() -> AsyncIterator[KafkaLog]:
    """A log of its own on the broker of the session."""
    settings = settings_of(fresh_prefix())
    await create_log_topics(settings)
    log = await KafkaLog.open(settings)
    yield log
    await log.close()


@pytest.fixture(scope="session")
def made_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One that tests may kill, for all of them; each gets it running."""
    broker = Broker(tmp_path_factory.mktemp("kafka"))
    yield broker
    broker.stop()


@pytest.fixture
def broker(made_broker: Broker) -> Broker:
    """A running broker that this test may kill."""
    made_broker.start()
    return made_broker
