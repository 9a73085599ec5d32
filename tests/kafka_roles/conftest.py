"""How tests of the roles reach the broker of the session, and a place of their own on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.kafka_roles.role_site import RoleSite
from tests.servers.kafka_fixtures import kafka_ends_with_the_session, pytest_runtest_makereport
from tests.servers.postgres import ADVICE
from tests.servers.postgres_system import SystemPostgres, find_programs

__all__ = ["kafka_ends_with_the_session", "pytest_runtest_makereport"]  # pytest finds them here


@pytest.fixture(scope="module")
def server() -> Iterator[SystemPostgres]:
    """One that a test may kill, with the tables where dagbok puts them by itself."""
    programs = find_programs()
    assert programs is not None, f"a server that can be killed is needed here. {ADVICE}"
    with SystemPostgres(programs) as running:
        yield running


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[RoleSite]:
    """Topics and a folder of the test's own. What still runs at the end of the test is killed."""
    site = RoleSite(tmp_path)
    yield site
    await site.close()
