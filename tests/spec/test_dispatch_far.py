"""Dispatches on a log that is far: nothing is read where it would hold up the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from dagbok.agents.scheduler.dispatch import problems
from dagbok.events.errors import StorageFailed
from dagbok.events.log.memory import MemoryLog
from dagbok.events.log.port import Topic
from dagbok.events.run import commands as c
from dagbok.testing import act
from dagbok.testing.make import failure, start, task
from tests.spec.test_dispatcher import Scheduler


@pytest.fixture(autouse=True)
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The offsets that were read; a read in the loop fails the test."""
    read = list[int]()

    def value_at(log: MemoryLog, topic: Topic, partition: int, offset: int) -> bytes:
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        read.append(offset)
        return inner(log, topic, partition, offset)

    inner = MemoryLog.value_at
    monkeypatch.setattr(MemoryLog, "value_at", value_at)
    return read


async def failed_once(names: Sequence[str], window: int = 256) -> Scheduler:
    """Each task has failed once, and its second attempt was sent."""
    scheduler = Scheduler(window, far=True)
    await scheduler.tell(start(*[task(name) for name in names]))
    for name in names:
        await scheduler.tell(act.start_attempt(scheduler.run(), name))
        await scheduler.tell(act.fail_attempt(scheduler.run(), name, failure(f"no luck with {name}")))
        scheduler.log_ms = max(scheduler.log_ms, scheduler.run().tasks[name].due_ms)
        await scheduler.tell(act.fire_timer(scheduler.run(), "backoff", name))
    return scheduler


def told(scheduler: Scheduler) -> str:
    sent = scheduler.queue.last
    assert sent is not None
    assert sent.problem is not None
    assert sent.problem.failure is not None
    return sent.problem.failure.message


async def test_what_was_confirmed_just_now_is_told_without_a_read(reads: list[int]) -> None:
    scheduler = await failed_once(["a"])
    assert scheduler.queue.new()[-1] == ("a", 2)
    assert told(scheduler) == "no luck with a"
    assert (reads, scheduler.dispatcher.lacks) == ([], False)


async def test_behind_a_fold_it_is_read_beside_and_sent_then(reads: list[int]) -> None:
    scheduler = await failed_once(["a"])
    scheduler.queue.new()
    scheduler.dispatcher.rebuild(scheduler.state)
    assert scheduler.at(1) == []
    assert scheduler.dispatcher.lacks
    assert scheduler.dispatcher.next_due_s() == 1, "whoever waits goes on at once"
    await scheduler.dispatcher.read(0)
    assert scheduler.at(1) == [("a", 2)]
    assert told(scheduler) == "no luck with a"
    assert (len(reads), scheduler.dispatcher.lacks) == (1, False)


async def test_a_read_that_fails_is_tried_again(reads: list[int]) -> None:
    scheduler = await failed_once(["a"])
    scheduler.queue.new()
    scheduler.dispatcher.rebuild(scheduler.state)
    scheduler.dispatcher.send(scheduler.state)
    scheduler.log.broken = True
    with pytest.raises(StorageFailed):
        await scheduler.dispatcher.read(0)
    assert scheduler.dispatcher.lacks
    scheduler.log.broken = False
    await scheduler.dispatcher.read(0)
    assert scheduler.at(1) == [("a", 2)]


async def test_what_is_settled_or_paused_meanwhile_is_not_sent() -> None:
    scheduler = await failed_once(["a", "b"])
    scheduler.queue.new()
    scheduler.dispatcher.rebuild(scheduler.state)
    scheduler.dispatcher.send(scheduler.state)
    await scheduler.tell(act.start_attempt(scheduler.run(), "a"))
    await scheduler.tell(c.PauseRun("wait"))
    await scheduler.dispatcher.read(0)
    assert scheduler.at(1) == []
    await scheduler.tell(c.ResumeRun())
    assert scheduler.queue.new() == [("b", 2)]
    assert scheduler.at(2) == []


async def test_what_comes_due_again_in_a_full_window_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problems, "KEPT", 1)
    scheduler = await failed_once(["a"], window=1)
    assert scheduler.queue.new()[-1] == ("a", 2)
    # What was kept of it makes room for what another run tells.
    await scheduler.tell(start(task("b")), "other")
    await scheduler.tell(act.fail_attempt(scheduler.run("other"), "b", failure("no luck")), "other")
    assert scheduler.at(31) == []
    await scheduler.dispatcher.read(0)
    assert scheduler.at(31) == [("a", 2)]


async def test_no_more_is_read_ahead_than_a_window_sends(reads: list[int]) -> None:
    names = [f"t{n}" for n in range(5)]
    scheduler = await failed_once(names, window=2)
    scheduler.queue.new()
    scheduler.dispatcher.rebuild(scheduler.state)
    scheduler.dispatcher.send(scheduler.state)
    await scheduler.dispatcher.read(0)
    assert len(reads) == 2
    assert len(scheduler.at(1)) == 2
