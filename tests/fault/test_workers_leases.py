"""Leases: kept while a function runs, given up when the log does not answer, and never shared by two results."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from dagbok import Outcome, TaskContext, worker
from dagbok.agents.workers.holdings import Holdings
from dagbok.agents.workers.leases import LeaseKeeper
from dagbok.agents.workers.outbox import OnAnswer, Outbox
from dagbok.events.codes import Code
from dagbok.events.envelope import Answer, Dispatch, Sender, run_command
from dagbok.events.ids import run_stream
from dagbok.events.log.clock import system_ms
from dagbok.events.log.memory import MemoryLog
from dagbok.events.run.events import AttemptLost, AttemptOpened, AttemptReleased, AttemptStarted, LeasesRenewed
from dagbok.events.run.values import SecurityContext
from dagbok.testing import OTHER_CLAIM, act, candidate, task
from tests.support.hosts import TIMEOUT_S, events_of, hosted, spec, until

LEASE_S = 0.3


async def test_a_task_of_three_leases_runs_once(tmp_path: Path) -> None:
    calls = 0

    @worker("long")
    async def long(task: TaskContext) -> Outcome:
        nonlocal calls
        calls += 1
        await asyncio.sleep(3 * LEASE_S)
        return Outcome.candidate(calls)

    async with hosted(tmp_path, long) as dagbok:
        assert (await dagbok.run(spec("long", lease_s=LEASE_S))).json() == 1
        assert len(await events_of(dagbok, LeasesRenewed)) >= 3
        assert not await events_of(dagbok, AttemptLost)


async def test_a_pure_worker_over_its_grace_claims_while_it_runs(tmp_path: Path) -> None:
    go_on = asyncio.Event()

    @worker("long", pure=True)
    async def long(task: TaskContext) -> Outcome:
        await go_on.wait()
        return Outcome.candidate(task.epoch)

    async with hosted(tmp_path, long) as dagbok:
        run = await dagbok.start(spec("long", id="t", lease_s=LEASE_S))
        await until(dagbok, lambda: dagbok.progress(run) == {"running": 1})
        go_on.set()
        assert (await dagbok.wait(run)).json() == 1
        assert len(await events_of(dagbok, AttemptStarted)) == 1


@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_without_renewals_the_attempt_stops_and_the_task_runs_again(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Holdings, "renew", lambda self, run, helds: None)
    stopped = threading.Event()

    @worker("cut", concurrency=2)
    async def cut(task: TaskContext) -> Outcome:
        if task.epoch == 1:
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()
        return Outcome.candidate(task.epoch)

    @worker("cut", concurrency=2)
    def cut_in_thread(task: TaskContext) -> Outcome:
        if task.epoch == 1:
            while not task.cancelled:
                threading.Event().wait(0.01)
            stopped.set()
        return Outcome.candidate(task.epoch)

    async with hosted(tmp_path, cut if kind == "async" else cut_in_thread) as dagbok:
        result = await dagbok.run(spec("cut", lease_s=LEASE_S))
        assert await asyncio.to_thread(stopped.wait, TIMEOUT_S)
        assert result.json() == 2
        (lost,) = await events_of(dagbok, AttemptLost)
        assert isinstance(lost, AttemptLost)


async def test_a_result_under_another_claim_is_refused(tmp_path: Path) -> None:
    release = asyncio.Event()

    @worker("waits")
    async def waits(task: TaskContext) -> Outcome:
        await release.wait()
        return Outcome.candidate("mine")

    async with hosted(tmp_path, waits) as dagbok:
        run = await dagbok.start(spec("waits", id="t"))
        await until(dagbok, lambda: dagbok.progress(run) == {"running": 1})
        state = dagbok.host.owner.state.runs[run_stream(run)]
        sender = Sender("local", "default", "process:dead")
        late = act.submit_outcome(state, "t", candidate("late"), claim=OTHER_CLAIM)
        answer = await dagbok.host.ask(run_command(sender, state.stream, late, id="late", now_ms=system_ms()))
        assert (answer.accepted, answer.code) == (False, Code.LEASE_REJECTED)
        release.set()
        assert (await dagbok.wait(run)).json() == "mine"


async def test_closing_hands_back_without_counting_and_the_next_start_goes_on_at_once(tmp_path: Path) -> None:
    attempts: list[tuple[int, int]] = []
    began = asyncio.Event()

    @worker("waits")
    async def waits(task: TaskContext) -> Outcome:
        attempts.append((task.attempt, task.epoch))
        if task.epoch == 1:
            began.set()
            await asyncio.Event().wait()
        return Outcome.candidate(task.attempt)

    async with hosted(tmp_path, waits) as dagbok:
        run = await dagbok.start(spec("waits"))
        await began.wait()
    async with hosted(tmp_path, waits) as dagbok:
        assert (await dagbok.wait(run)).json() == 1
        assert len(await events_of(dagbok, AttemptReleased)) == 1
        assert not await events_of(dagbok, AttemptLost)
    assert attempts == [(1, 1), (1, 2)]


async def test_a_dispatch_that_comes_many_times_runs_once(tmp_path: Path) -> None:
    calls = 0
    began, release = asyncio.Event(), asyncio.Event()

    @worker("once", pure=True)
    async def once(task: TaskContext) -> Outcome:
        nonlocal calls
        calls += 1
        began.set()
        await release.wait()
        return Outcome.candidate(1)

    async with hosted(tmp_path, once) as dagbok:
        queue = dagbok.host.queue
        put = queue.put

        def thrice(lane: tuple[str, str], dispatches: list[object]) -> None:
            put(lane, [*dispatches, *dispatches, *dispatches])  # type: ignore[arg-type, list-item]

        queue.put = thrice  # type: ignore[method-assign, assignment]
        run = await dagbok.start(spec("once"))
        await began.wait()
        release.set()
        assert (await dagbok.wait(run)).succeeded
        assert calls == 1
        opened = await events_of(dagbok, AttemptOpened)
        assert len(opened) == 2  # one to work, one to verify


async def test_a_claim_that_a_pause_refuses_is_tried_again_later_each_time_up_to_a_minute() -> None:
    now_s, asked = 0.0, list[float]()
    sent: list[OnAnswer] = []
    outbox = Outbox(MemoryLog(), "process/p", lambda: now_s)
    outbox.send = lambda command, on_answer=None, **_: sent.append(on_answer)  # type: ignore[method-assign]
    holdings = Holdings("p", "process/p", outbox, system_ms, lambda: now_s)
    keeper = LeaseKeeper(holdings, lambda: now_s)
    dispatch = pure_dispatch()
    held = holdings.take(dispatch, TaskContext(dispatch, lambda item: b""))
    assert held is not None
    while now_s < 300:
        keeper.tick()
        for on_answer in sent:
            asked.append(now_s)
            on_answer(Answer(id="1", accepted=False, at=(0, 0), code=Code.RUN_PAUSED, retry=True))
        sent.clear()
        now_s += 1
    assert asked == [5, 6, 8, 12, 20, 36, 68, 128, 188, 248]
    assert held.stopped is None


def pure_dispatch() -> Dispatch:
    """An attempt that runs unclaimed."""
    return Dispatch(
        kind="work",
        tenant="acme",
        project="docs",
        run="r",
        task="t",
        epoch=1,
        phase="solve",
        pool="default",
        key="work",
        input_hash="",
        opened_at=(0, 0),
        spec=task("t"),
        attempt=1,
        context=SecurityContext(user="ann"),
        graph_revision=0,
    )
