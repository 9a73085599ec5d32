"""A broker that tests may kill, and a site on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.kafka_kills.site import Site, open_site
from tests.servers.kafka_broker import Broker
from tests.servers.kafka_fixtures import kafka_ends_with_the_session, pytest_runtest_makereport
from tests.support.places import PostgresPlace

__all__ = ["kafka_ends_with_the_session", "pytest_runtest_makereport"]  # pytest finds them here


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


@pytest.fixture
async def site(broker: Broker, tmp_path: Path, in_postgres: PostgresPlace) -> AsyncIterator[Site]:
    """Topics and tables of the test's own, and no members yet."""
    async with open_site(broker.bootstrap, tmp_path, in_postgres) as site:
        yield site
