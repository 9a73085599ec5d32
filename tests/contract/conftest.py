"""The log under test, by what a test needs of it; a test that opens it itself, perhaps twice, takes `durable`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dagbok.events.log.port import Log
from tests.contract.adapters import ADAPTERS, Adapter, ManualClock
from tests.servers.kafka_fixtures import kafka_ends_with_the_session, pytest_runtest_makereport

__all__ = ["kafka_ends_with_the_session", "pytest_runtest_makereport"]  # pytest finds them here


def _name(adapter: Adapter) -> str:
    return adapter.name


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=ADAPTERS, ids=_name)
def any_adapter(request: pytest.FixtureRequest) -> Adapter:
    adapter: Adapter = request.param
    return adapter


@pytest.fixture(params=[adapter for adapter in ADAPTERS if adapter.durable], ids=_name)
def durable(request: pytest.FixtureRequest) -> Adapter:
    adapter: Adapter = request.param
    return adapter


@pytest.fixture(params=[adapter for adapter in ADAPTERS if adapter.durable and adapter.refuses], ids=_name)
def durable_refusing(request: pytest.FixtureRequest) -> Adapter:
    adapter: Adapter = request.param
    return adapter


@pytest.fixture
async def log(any_adapter: Adapter, tmp_path: Path, clock: ManualClock) -> AsyncIterator[Log]:
    log = await any_adapter.open(tmp_path, clock)
    yield log
    await log.close()


@pytest.fixture(params=[adapter for adapter in ADAPTERS if adapter.refuses], ids=_name)
async def refusing_log(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> AsyncIterator[Log]:
    log: Log = await request.param.open(tmp_path, clock)
    yield log
    await log.close()


@pytest.fixture(params=[adapter for adapter in ADAPTERS if not adapter.refuses], ids=_name)
async def unrefusing_log(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> AsyncIterator[Log]:
    log: Log = await request.param.open(tmp_path, clock)
    yield log
    await log.close()


@pytest.fixture(params=[adapter for adapter in ADAPTERS if adapter.takes_clock], ids=_name)
async def clocked_log(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> AsyncIterator[Log]:
    log: Log = await request.param.open(tmp_path, clock)
    yield log
    await log.close()
