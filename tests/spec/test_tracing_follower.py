"""The follower of an owner: sends what the log says, from memory or from the log, and never holds the owner up."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from dagbok.agents.scheduler.handle import Decided, handle
from dagbok.agents.tracing.fold import SpanFold
from dagbok.agents.tracing.follower import MAX_PENDING, RESEND_MS, YIELD_SPANS, TraceFollower
from dagbok.agents.tracing.sink import SpanSink
from dagbok.agents.tracing.span import Span
from dagbok.agents.tracing.stored import stored_spans
from dagbok.events.log.memory import MemoryLog
from dagbok.events.log.port import EVENTS
from dagbok.events.run import commands as c
from dagbok.projections.partition import PartitionState
from dagbok.testing import act, candidate, failure, start, task
from tests.support.histories import random_history
from tests.support.logbuilder import LogBuilder

TIMEOUT_S = 30.0


class Receiver:
    """Keeps spans; while `open` is not set, its exports last."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.open = threading.Event()
        self.open.set()

    def export(self, spans: Sequence[Span]) -> bool:
        assert self.open.wait(TIMEOUT_S)
        self.spans += spans
        return True

    def stop(self) -> None:
        self.open.set()


class Owner:
    """Decides the commands of a history anew, and tells a follower of every `batch` commits."""

    def __init__(self, history: LogBuilder, log: MemoryLog, follower: TraceFollower, batch: int = 3) -> None:
        self._history, self._log, self._follower, self._batch = history, log, follower, batch
        self.state = PartitionState(0)
        self._at = 0

    def fold(self, until: int) -> None:
        """Begin where the log has the first `until` commands."""
        self._decide(until)
        self._follower.confirmed(self.state, ())

    def go_on(self, until: int) -> None:
        """All up to `until`, without a pause."""
        while self._at < until:
            self._follower.confirmed(self.state, self._decide(min(until, self._at + self._batch)))

    def _decide(self, until: int) -> list[Decided]:
        records, self._at = self._history.commands[self._at : until], until
        return [handle(self.state, record, 1) for record in records]


@asynccontextmanager
async def following(log: MemoryLog, receiver: Receiver, buffer_spans: int = 64) -> AsyncIterator[TraceFollower]:
    sink = SpanSink(receiver.export, receiver.stop, buffer_spans=buffer_spans, batch_spans=8, delay_s=0)
    follower = TraceFollower(log, 0, SpanFold(), sink)
    running = asyncio.create_task(follower.run())
    try:
        async with asyncio.timeout(TIMEOUT_S):
            yield follower
            await follower.caught_up()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await sink.close(TIMEOUT_S)
    assert sink.dropped == 0


async def all_spans(history: LogBuilder) -> list[Span]:
    log = await history.log()
    return [span for run in history.state.runs.values() async for span in stored_spans(log, 0, run.run)]


def clean(seed: int, steps: int) -> LogBuilder:
    """A random history without void records, so that its commands decided again give its very log."""
    history = random_history(seed, steps)
    again = LogBuilder()
    for record in history.commands:
        again.now_ms = record.append_ms
        again.deliver(record.value)
    return again


def same(left: list[Span], right: list[Span]) -> bool:
    return Counter(map(repr, left)) == Counter(map(repr, right))


@pytest.mark.parametrize("seed", range(5))
async def test_an_owner_from_the_start_sends_every_span_once(seed: int) -> None:
    history, receiver = clean(seed, 300), Receiver()
    log = await history.log()
    async with following(log, receiver) as follower:
        owner = Owner(history, log, follower)
        owner.fold(0)
        owner.go_on(len(history.commands))
    assert same(receiver.spans, await all_spans(history))


@pytest.mark.parametrize("seed", range(5))
async def test_an_owner_that_takes_over_sends_the_spans_that_the_first_would_have_sent(seed: int) -> None:
    history, first, second = clean(seed, 300), Receiver(), Receiver()
    log, half = await history.log(), len(history.commands) // 2
    async with following(log, first) as follower:
        owner = Owner(history, log, follower)
        owner.fold(0)
        owner.go_on(half)
    async with following(log, second) as follower:
        owner = Owner(history, log, follower)
        owner.fold(half)
        owner.go_on(len(history.commands))

    everything = {span.span_id: span for span in await all_spans(history)}
    sent = {span.span_id: span for span in (*first.spans, *second.spans)}
    assert sent == everything
    assert all(everything[span.span_id] == span for span in (*first.spans, *second.spans))


async def test_a_takeover_sends_again_only_what_ended_shortly_before() -> None:
    history, receiver = LogBuilder(), Receiver()
    history.send("run", start(task("old"), task("young"), task("open")))
    for id, later_ms in (("old", 1_000), ("young", RESEND_MS + 1_000), ("", 1_000)):
        history.now_ms += later_ms
        if id:
            history.send("run", act.submit_outcome(history.run("run"), id, candidate(id)))
            history.send("run", act.submit_verdict(history.run("run"), id, "pass"))
    log, there = await history.log(), len(history.commands)
    history.send("run", act.submit_outcome(history.run("run"), "open", candidate("open")))
    history.send("run", act.submit_verdict(history.run("run"), "open", "pass"))
    await history.append_to(log, there)

    async with following(log, receiver) as follower:
        owner = Owner(history, log, follower)
        owner.fold(there)
        owner.go_on(len(history.commands))
    tasks = [span.attributes.get("dagbok.task_id") for span in receiver.spans]
    assert tasks == ["young"] * 3 + ["open"] * 3 + [None]


async def test_with_a_slow_receiver_the_position_waits_and_nothing_is_lost() -> None:
    history, receiver = LogBuilder(), Receiver()
    for number in range(MAX_PENDING // 4 + 50):
        history.send(f"run-{number}", start(task("root")))
        history.send(f"run-{number}", act.submit_outcome(history.run(f"run-{number}"), "root", candidate(number)))
        history.send(f"run-{number}", act.submit_verdict(history.run(f"run-{number}"), "root", "pass"))
        history.send(f"run-{number}", c.PauseRun("too late"))
    log = await history.log()
    receiver.open.clear()
    async with following(log, receiver, buffer_spans=16) as follower:
        owner = Owner(history, log, follower)
        owner.fold(0)
        owner.go_on(len(history.commands))  # returns, though nothing can be sent
        assert receiver.spans == []
        assert len(follower._pending) <= MAX_PENDING
        receiver.open.set()
    assert same(receiver.spans, await all_spans(history))


async def test_a_commit_that_ends_thousands_of_spans_holds_nobody_up() -> None:
    history, receiver, tasks = LogBuilder(), Receiver(), 3_000
    history.send("run", start(*[task(f"task-{number}") for number in range(tasks)]))
    history.send("run", c.CancelRun("enough"))
    log, turns, done = await history.log(), 0, asyncio.Event()

    async def others() -> None:
        nonlocal turns
        while not done.is_set():
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    async with following(log, receiver, buffer_spans=100_000) as follower:
        Owner(history, log, follower).fold(0)
        await follower.caught_up()
        before = turns
        owner = Owner(history, log, follower)
        owner.go_on(2)
        await follower.caught_up()
        assert turns - before >= tasks / YIELD_SPANS
    done.set()
    await beside
    assert same(receiver.spans, await all_spans(history))


async def test_a_closed_run_that_is_reopened_long_after_is_folded_again() -> None:
    history, receiver = LogBuilder(), Receiver()
    history.send("run", start(task("first", max_attempts=1), task("last", depends_on=("first",)), roots=("last",)))
    history.send("run", act.fail_attempt(history.run("run"), "first", failure(terminal=True)))
    history.now_ms += 2 * RESEND_MS
    history.send("other", start(task("root")))
    there = len(history.commands)
    history.send("run", c.RetryTask("first", "once more"))
    for id in ("first", "last"):
        history.send("run", act.submit_outcome(history.run("run"), id, candidate(id)))
        history.send("run", act.submit_verdict(history.run("run"), id, "pass"))
    log = await history.log()

    async with following(log, receiver) as follower:
        owner = Owner(history, log, follower)
        owner.fold(there)
        owner.go_on(len(history.commands))
    assert (
        receiver.spans
        == [span for span in await all_spans(history) if span.end_ms > 2 * RESEND_MS][-len(receiver.spans) :]
    )
    assert [span.attributes["dagbok.part"] for span in receiver.spans if "dagbok.part" in span.attributes] == [1, 1, 1]
    assert receiver.spans[-1].name == "run"


async def test_what_goes_wrong_ends_the_tracing_alone() -> None:
    history, receiver = clean(1, 50), Receiver()
    empty = MemoryLog()  # not the log that was told of
    async with following(empty, receiver) as follower:
        owner = Owner(history, empty, follower)
        owner.fold(20)
        owner.go_on(50)
        await follower.caught_up()
        owner.go_on(len(history.commands))
    assert receiver.spans == []
    assert (await empty.bounds(EVENTS, 0)).end == 0
