"""Reading single events of commits that have thousands: cheap for each, and bounded in what is kept."""

from __future__ import annotations

import gc
import weakref

import pytest

from dagbok.events import body, places
from dagbok.events.errors import LogCorrupt, LogLost
from dagbok.events.log.memory import MemoryLog
from dagbok.events.log.port import EVENTS, Record, Topic
from dagbok.events.places import events_at
from dagbok.events.run.events import DecompositionAccepted, TasksAdded
from dagbok.testing import act
from dagbok.testing.make import decompose, start, task
from tests.support.logbuilder import LogBuilder

CHILDREN = 300


class CountingLog(MemoryLog):
    """Counts how often a value is read."""

    reads = 0

    def value_at(self, topic: Topic, partition: int, offset: int) -> bytes:
        self.reads += 1
        return super().value_at(topic, partition, offset)


async def large_log(families: int = 1) -> CountingLog:
    """One run per family: a start, then a decomposition that makes a large commit."""
    builder, log = LogBuilder(), CountingLog()
    for number in range(families):
        name = f"run-{number}"
        builder.send(name, start(task("root")))
        children = decompose(*[task(f"child-{n}", contract="x" * 1_000) for n in range(CHILDREN)])
        builder.send(name, act.submit_outcome(builder.run(name), "root", children))
    await log.append(EVENTS, 0, builder.records)
    return log


async def test_a_large_commit_is_read_once_for_all_that_is_asked_of_it() -> None:
    log = await large_log()
    events = events_at(log, 0, 1)
    kinds = [type(event) for event in events]
    assert {DecompositionAccepted, TasksAdded} < set(kinds)
    for index, kind in enumerate(kinds):
        assert type(events_at(log, 0, 1)[index]) is kind
    assert log.reads == 1
    assert [type(event) for event in events_at(log, 0, 1)[:3]] == kinds[:3]
    assert len(events) == len(kinds)


async def test_only_the_event_that_is_asked_for_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    log, decoded = await large_log(), list[str]()

    def decode(item: body.StoredEvent) -> object:
        decoded.append(item.type)
        return body.decode_event(item)

    monkeypatch.setattr(places, "decode_event", decode)
    events = events_at(log, 0, 1)
    wanted = next(index for index in range(len(events)) if isinstance(events[index], DecompositionAccepted))
    decoded.clear()
    assert isinstance(events_at(log, 0, 1)[wanted], DecompositionAccepted)
    assert decoded == ["DecompositionAccepted"]


async def test_only_the_last_large_commits_are_kept_and_small_ones_never() -> None:
    log = await large_log(families=places.KEPT + 1)
    for family in range(places.KEPT + 1):
        events_at(log, 0, 2 * family + 1)
    log.reads = 0
    events_at(log, 0, 2 * places.KEPT + 1)
    assert log.reads == 0
    events_at(log, 0, 1)
    assert log.reads == 1
    events_at(log, 0, 0)
    events_at(log, 0, 0)
    assert log.reads == 3


async def test_what_is_kept_goes_with_its_log_and_no_log_sees_that_of_another() -> None:
    log, other = await large_log(), CountingLog()
    events_at(log, 0, 1)
    with pytest.raises(LogLost):
        events_at(other, 0, 1)
    await other.append(EVENTS, 0, [Record("run:a", b"no commit")] * 2)
    with pytest.raises(LogCorrupt):
        events_at(other, 0, 1)
    gone = weakref.ref(log)
    del log
    gc.collect()
    assert gone() is None
