"""What tests of several folders share: places for tables, in each database that dagbok serves, and where spans go."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers.postgres import open_postgres
from tests.support.otlp import Receiver, environment, receiving
from tests.support.places import POSTGRESQL, SITES, Place, PostgresPlace, Site, postgres_place, sqlite_place


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A PostgreSQL database, started when the first test needs it."""
    _, server = open_postgres()
    with server as url:
        yield url


@pytest.fixture(scope="session", params=SITES)
def site(request: pytest.FixtureRequest) -> Site:
    """Fresh places in one database, then the same in the other: for tests that need many."""
    if request.param == POSTGRESQL:
        url: str = request.getfixturevalue("postgres_url")
        return lambda: postgres_place(url)
    return sqlite_place


@pytest.fixture
def place(site: Site) -> Iterator[Place]:
    """A fresh place for tables, in one database and then in the other."""
    with site() as fresh:
        yield fresh


@pytest.fixture
def in_postgres(postgres_url: str) -> Iterator[PostgresPlace]:
    """A fresh place in PostgreSQL, for what holds there alone."""
    with postgres_place(postgres_url) as fresh:
        yield fresh


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """Tracing is on, here and in processes that are started, and comes here."""
    with receiving() as receiver:
        for name, value in environment(receiver).items():
            monkeypatch.setenv(name, value)
        yield receiver
