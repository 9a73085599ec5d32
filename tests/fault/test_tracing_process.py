"""The process that sends spans may die: the next batch has another one, and it never outlives its parent."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import pytest

from dagbok.agents.tracing.process import ChildExporter
from dagbok.agents.tracing.span import Span
from tests.support.otlp import Receiver, environment, receiving


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


def span(number: int) -> Span:
    return Span(2**127 + 1, number, None, "run", 0, 1, {"dagbok.run_id": "é", "dagbok.usage.cost": 1.0})


async def test_after_its_death_the_next_batch_has_another_one(receiver: Receiver) -> None:
    exporter = ChildExporter({**os.environ, **environment(receiver)})
    assert exporter.export([span(1)])
    first = exporter._child
    assert first is not None
    first.kill()
    assert [exporter.export([span(2)]), exporter.export([span(3)])] == [False, True]
    exporter.stop()
    assert [int(arrived.id, 16) for arrived in receiver.spans] == [1, 3]
    assert receiver.spans[0].trace == f"{2**127 + 1:032x}"
    assert receiver.spans[0].attributes == {"dagbok.run_id": "é", "dagbok.usage.cost": 1.0}


async def test_it_is_stopped_while_the_receiver_hangs(receiver: Receiver) -> None:
    receiver.open.clear()
    exporter = ChildExporter({**os.environ, **environment(receiver)})
    exporting = asyncio.create_task(asyncio.to_thread(exporter.export, [span(1)]))
    await receiver.wait(lambda: receiver.requests > 0)
    exporter.stop()
    assert await exporting is False
    assert exporter.export([span(2)]) is False
