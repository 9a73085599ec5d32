"""What every folder of tests on Kafka has in its `conftest.py`."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest

from tests.servers.kafka_session import log_tail, stop_session_kafka


@pytest.fixture(scope="session", autouse=True)
def kafka_ends_with_the_session() -> Iterator[None]:
    """It is started by the first test that needs it."""
    yield
    stop_session_kafka()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test on Kafka that fails shows what the broker has said last."""
    report = yield
    if report.failed and "kafka" in item.nodeid and (told := log_tail()):
        report.sections.append(("log of the broker", told))
    return report
