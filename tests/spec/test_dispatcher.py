"""The dispatcher: follows confirmed commits, and can be rebuilt from the state at any time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import pytest

from dagbok.agents.queue import Lane, MemoryQueue, lane_address, lane_of
from dagbok.agents.scheduler.dispatch.dispatcher import Dispatcher
from dagbok.agents.scheduler.handle import Decided, handle
from dagbok.events.envelope import CancelHint, Dispatch, Reply, command_record, run_command
from dagbok.events.errors import StorageFailed
from dagbok.events.log.memory import MemoryLog
from dagbok.events.log.port import Record, StoredRecord, Topic
from dagbok.events.run import commands as c
from dagbok.events.run.values import Claim, Limits
from dagbok.projections.partition import PartitionState
from dagbok.projections.task_graph.state import RunState
from dagbok.testing import CLAIM, act, blocked, candidate, failure, start, task
from tests.support.logbuilder import SENDER, START_MS


class Lanes(MemoryQueue):
    """A queue whose lanes can be looked into."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[tuple[str, int]] = []
        self.last: Dispatch | None = None
        self.hints: list[Reply] = []
        self.lane_hints: list[Reply] = []
        self.listen("process/1", self.hints.extend)
        self.listen(lane_address(lane_of("work", "default")), self.lane_hints.extend)

    def put(self, lane: Lane, dispatches: Sequence[Dispatch]) -> None:
        self.sent += [(item.task, item.epoch) for item in dispatches]
        self.last = dispatches[-1]

    def new(self) -> list[tuple[str, int]]:
        """Task and epoch of what was sent since the last look."""
        sent, self.sent = self.sent, []
        return sent


class FailingReads(MemoryLog):
    """A log that cannot be read for a while."""

    broken = False

    def value_at(self, topic: Topic, partition: int, offset: int) -> bytes:
        if self.broken:
            raise StorageFailed("not now")
        return super().value_at(topic, partition, offset)


class Scheduler:
    """A partition without an owner: every commit counts as confirmed at once."""

    def __init__(self, window: int = 256, *, far: bool = False) -> None:
        self.state, self.log, self.queue = PartitionState(0), FailingReads(), Lanes()
        self.now_s, self.log_ms, self.commands, self.sender = 0.0, START_MS, 0, SENDER
        self.dispatcher = Dispatcher(self.queue, self.log, lambda: self.now_s, window=window, far=far)

    async def tell(self, command: c.RunCommand, run: str = "r") -> None:
        """Decide a command, and send what follows."""
        envelope = run_command(self.sender, f"run:{run}", command, id=f"id-{self.commands}", now_ms=self.log_ms)
        record = StoredRecord(self.commands, self.log_ms, "", command_record(envelope).value)
        decided = handle(self.state, record, 1)
        self.commands += 1
        await self.log.append("events", 0, [_record(decided)])
        self.dispatcher.confirmed(self.state, decided)
        self.dispatcher.send(self.state)

    def run(self, run: str = "r") -> RunState:
        """The state of a run."""
        return self.state.runs[f"run:{run}"]

    def at(self, now_s: float) -> list[tuple[str, int]]:
        """What is sent at this time."""
        self.now_s = now_s
        self.dispatcher.send(self.state)
        return self.queue.new()


def _record(decided: Decided) -> Record:
    return Record("", decided.value)


async def started(*names: str, window: int = 256, **more: int) -> Scheduler:
    """A run with these tasks."""
    scheduler = Scheduler(window)
    await scheduler.tell(start(*[task(name) for name in names], limits=msgspec.convert(more, Limits)))
    return scheduler


async def test_open_attempts_are_sent_once_and_again_when_nobody_claims_them() -> None:
    scheduler = await started("a", "b")
    assert scheduler.queue.new() == [("a", 1), ("b", 1)]
    assert scheduler.at(29) == []
    await scheduler.tell(act.start_attempt(scheduler.run(), "a"))
    assert scheduler.at(31) == [("b", 1)]
    assert scheduler.at(32) == []


async def test_a_claim_opens_a_place_in_the_window() -> None:
    scheduler = await started("a", "b", "c", window=1)
    assert scheduler.queue.new() == [("a", 1)]
    await scheduler.tell(act.start_attempt(scheduler.run(), "a"))
    assert scheduler.queue.new() == [("b", 1)]


async def test_a_paused_run_leaves_the_window_to_others_and_is_sent_anew_on_resume() -> None:
    scheduler = await started("a", "b", "c", window=2)
    assert scheduler.queue.new() == [("a", 1), ("b", 1)]
    await scheduler.tell(c.PauseRun())
    await scheduler.tell(start(task("x"), task("y")), "other")
    assert scheduler.queue.new() == [("x", 1), ("y", 1)]
    for name in ("x", "y"):
        await scheduler.tell(act.start_attempt(scheduler.run("other"), name), "other")
    assert scheduler.queue.new() == []
    await scheduler.tell(c.ResumeRun())
    assert sorted(scheduler.queue.new()) in ([("a", 1), ("b", 1)], [("a", 1), ("c", 1)], [("b", 1), ("c", 1)])
    for name in "abc":
        await scheduler.tell(act.start_attempt(scheduler.run(), name))
    assert len(scheduler.queue.new()) == 1
    assert scheduler.at(10_000) == []


async def test_nothing_of_a_cancelled_run_is_sent() -> None:
    scheduler = await started("a", "b", window=1)
    scheduler.queue.new()
    await scheduler.tell(c.PauseRun())
    await scheduler.tell(c.CancelRun())
    assert [scheduler.at(now_s) for now_s in (1, 31, 1_000)] == [[], [], []]


async def test_who_runs_what_was_closed_is_told() -> None:
    scheduler = await started("a")
    await scheduler.tell(c.StartAttempt("a", 1, CLAIM, "process/1"))
    await scheduler.tell(c.CancelRun())
    assert scheduler.queue.hints == [CancelHint(run="r", task="a", epoch=1)]


@pytest.mark.parametrize("paused", [False, True])
async def test_who_may_have_taken_what_was_closed_unclaimed_is_told(paused: bool) -> None:
    scheduler = await started("a", "b")
    await scheduler.tell(c.StartAttempt("a", 1, CLAIM, "process/1"))
    if paused:
        await scheduler.tell(c.PauseRun())
    await scheduler.tell(c.CancelRun())
    assert scheduler.queue.lane_hints == [CancelHint(run="r", task="b", epoch=1)]


async def test_nothing_is_kept_of_what_is_over() -> None:
    scheduler = Scheduler()
    for number in range(20):
        run = f"r{number}"
        await scheduler.tell(start(task("a", pool=f"pool-{number}"), task("b", pool="other")), run)
        if number % 2:
            await scheduler.tell(c.PauseRun(), run)
        else:
            await scheduler.tell(act.start_attempt(scheduler.run(run), "a"), run)
        await scheduler.tell(c.CancelRun(), run)
    kept = {name: value for name, value in vars(scheduler.dispatcher).items() if isinstance(value, dict)}
    assert set(kept) >= {"_lanes", "_open", "_parked", "_claimed"}
    assert not any(kept.values()), kept


async def test_what_is_parked_while_its_lane_is_forgotten_is_sent_on_resume() -> None:
    scheduler = await started("a")
    scheduler.queue.new()
    await scheduler.tell(c.PauseRun())
    assert scheduler.at(2_000) == []
    await scheduler.tell(c.ResumeRun())
    assert scheduler.queue.new() == [("a", 1)]


async def test_after_a_rebuild_what_is_unclaimed_is_sent_again_and_what_is_claimed_is_told_when_it_closes() -> None:
    scheduler = await started("a", "b")
    scheduler.queue.new()
    await scheduler.tell(c.StartAttempt("a", 1, CLAIM, "process/1"))
    scheduler.dispatcher.rebuild(scheduler.state)
    assert scheduler.at(0) == [("b", 1)]
    await scheduler.tell(c.CancelRun())
    assert scheduler.queue.hints == [CancelHint(run="r", task="a", epoch=1)]


async def test_an_unserved_attempt_comes_again_soon_and_then_later_each_time() -> None:
    scheduler = await started("a")
    scheduler.queue.new()
    times = []
    for now_s in range(12):
        scheduler.now_s = now_s
        await scheduler.tell(c.RejectAttempt("a", 1, f"process-{now_s}")) if now_s in (0, 1, 3, 7) else None
        scheduler.dispatcher.send(scheduler.state)
        times += [now_s] * len(scheduler.queue.new())
    assert times == [1, 3, 7]


async def test_what_cannot_be_read_now_is_sent_when_it_can() -> None:
    scheduler = await started("a", "b")
    scheduler.queue.new()
    claim = Claim("p", 1, "n")
    await scheduler.tell(act.fail_attempt(scheduler.run(), "a", failure("bad luck"), claim=claim))
    scheduler.log_ms = scheduler.run().tasks["a"].due_ms
    scheduler.log.broken = True
    with pytest.raises(StorageFailed):
        await scheduler.tell(act.fire_timer(scheduler.run(), "backoff", "a"))
    scheduler.log.broken = False
    assert scheduler.at(1) == [("a", 2)]


@pytest.mark.parametrize(
    ("ends", "says"),
    [
        (lambda run: act.submit_outcome(run, "a", blocked("no key")), c.ResolveBlock("a", "here it is")),
        (lambda run: act.fail_attempt(run, "a", failure(terminal=True)), c.RetryTask("a", "here it is")),
    ],
)
async def test_the_note_of_a_person_reaches_the_next_attempt(
    ends: Callable[[RunState], c.RunCommand], says: c.RunCommand
) -> None:
    scheduler = await started("a")
    await scheduler.tell(act.start_attempt(scheduler.run(), "a"))
    await scheduler.tell(ends(scheduler.run()))
    await scheduler.tell(says)
    sent = scheduler.queue.last
    assert sent is not None
    assert sent.epoch == 2
    assert sent.problem is not None
    assert sent.problem.note == "here it is"


async def test_a_result_opens_its_review_in_the_lane_of_verifiers() -> None:
    scheduler = await started("a")
    scheduler.queue.new()
    await scheduler.tell(act.submit_outcome(scheduler.run(), "a", candidate({"x": 1})))
    assert scheduler.queue.new() == [("a", 2)]
