"""How tests of the roles reach the broker of the session, and a place of their own on it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.kafka_roles.role_site import RoleSite
from tests.servers.kafka_fixtures import kafka_ends_with_the_session, pytest_runtest_makereport

__all__ = ["kafka_ends_with_the_session", "pytest_runtest_makereport"]  # pytest finds them here


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[RoleSite]:
    """Topics and a folder of the test's own. What still runs at the end of the test is killed."""
    site = RoleSite(tmp_path)
    yield site
    await site.close()
