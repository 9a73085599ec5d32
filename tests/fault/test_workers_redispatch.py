"""What is sent again, or closed, while it waits for a place in a worker process."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from dagbok import Candidate, Outcome, TaskContext, verifier, worker
from dagbok.agents.queue import Lane
from dagbok.client import Dagbok
from dagbok.events.envelope import Dispatch
from tests.support.hosts import hosted, spec


class SentAgain:
    """What a host puts on its queue; `again` sends all of one kind once more."""

    def __init__(self, dagbok: Dagbok) -> None:
        self._put_on, self._sent = dagbok.host.queue.put, list[tuple[Lane, Sequence[Dispatch]]]()
        dagbok.host.queue.put = self._put  # type: ignore[method-assign]

    async def again(self, kind: str) -> None:
        """Sent, and delivered."""
        for lane, dispatches in tuple(self._sent):
            if lane[0] == kind:
                self._put_on(lane, dispatches)
        for _ in range(5):
            await asyncio.sleep(0)

    def _put(self, lane: Lane, dispatches: Sequence[Dispatch]) -> None:
        self._sent.append((lane, dispatches))
        self._put_on(lane, dispatches)


async def test_work_and_reviews_that_wait_run_once_however_often_they_are_sent(tmp_path: Path) -> None:
    calls = Counter[str]()
    working, reviewing, work, review = asyncio.Event(), asyncio.Event(), asyncio.Event(), asyncio.Event()

    @worker("pure", pure=True, concurrency=2)
    async def pure(task: TaskContext) -> Outcome:
        calls["work"] += 1
        working.set()
        await work.wait()
        return Outcome.candidate(1)

    @verifier("slow", version="1", concurrency=2)
    async def slow(candidate: Candidate, task: TaskContext) -> bool:
        calls["review"] += 1
        reviewing.set()
        await review.wait()
        return True

    async with hosted(tmp_path, pure, slow) as dagbok:
        sent = SentAgain(dagbok)
        run = await dagbok.start([spec("pure", verifier="slow") for _ in range(30)])
        await working.wait()
        for _ in range(3):
            await sent.again("work")
        work.set()
        await reviewing.wait()
        for _ in range(3):
            await sent.again("verify")
        review.set()
        assert (await dagbok.wait(run)).succeeded
    assert calls == {"work": 30, "review": 30}


async def test_what_waits_of_a_cancelled_run_is_not_run(tmp_path: Path) -> None:
    began, stopped = list[str](), asyncio.Event()
    first = asyncio.Event()

    @worker("pure", pure=True, concurrency=1)
    async def pure(task: TaskContext) -> Outcome:
        began.append(task.goal)
        if task.goal == "theirs":
            first.set()
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()
        return Outcome.candidate(1)

    async with hosted(tmp_path, pure) as dagbok:
        run = await dagbok.start([spec("pure", goal="theirs") for _ in range(20)])
        await first.wait()
        await dagbok.cancel(run)
        # The one that runs unclaimed is stopped, those behind it are dropped.
        await asyncio.wait_for(stopped.wait(), 5)
        assert (await dagbok.run(spec("pure", goal="mine"))).succeeded
    assert began == ["theirs", "mine"]
