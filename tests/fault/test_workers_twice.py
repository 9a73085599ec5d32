"""The same attempt in two processes at once: a pure worker and a verifier run without a claim, so what was sent again
may run beside the first. That costs time; only one of them counts."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from dagbok import Candidate, Dagbok, Outcome, TaskContext, verifier, worker
from dagbok.agents.queue import AttemptKey, Lane, MemoryQueue
from dagbok.agents.queue.port import Taker
from dagbok.agents.workers.definitions import Registry
from dagbok.agents.workers.process import WorkerProcess
from dagbok.events.envelope import Dispatch
from dagbok.events.log.clock import system_ms
from dagbok.events.run.events import CandidateSubmitted, CommandRefused, TaskVerified, VerdictRecorded
from tests.support.hosts import events_of, hosted, spec


class Work:
    """Functions that are called at will: how often each began, and what lets them go on."""

    def __init__(self) -> None:
        self.began, self.go_on = Counter[str](), {kind: asyncio.Event() for kind in ("work", "verify")}
        self.moved = asyncio.Condition()

    async def begin(self, kind: str) -> int:
        """Begin one call; its number, when it may go on."""
        async with self.moved:
            self.began[kind] += 1
            number = self.began[kind]
            self.moved.notify_all()
        await self.go_on[kind].wait()
        return number

    async def until(self, kind: str, count: int) -> None:
        """Wait until so many calls have begun."""
        async with self.moved:
            await self.moved.wait_for(lambda: self.began[kind] >= count)


def definitions(work: Work) -> Registry:
    """A worker whose results differ, and a verifier whose verdicts do: which one counts can be seen."""

    @worker("pure", pure=True)
    async def pure(task: TaskContext) -> Outcome:
        return Outcome.candidate(await work.begin("work"))

    @verifier("judge", version="1")
    async def judge(candidate: Candidate, task: TaskContext) -> bool:
        return await work.begin("verify") == 1

    registry = Registry()
    registry.add(pure)
    registry.add(judge)
    return registry


@asynccontextmanager
async def two_processes(folder: Path, registry: Registry) -> AsyncIterator[Dagbok]:
    """A host, and a second worker process on the same log, which has a queue of its own; what the host sends goes to
    both."""
    async with hosted(folder, *registry.workers.values(), *registry.verifiers.values()) as dagbok:
        host, queue = dagbok.host, MemoryQueue()
        put = host.queue.put

        def both(lane: Lane, dispatches: Sequence[Dispatch]) -> None:
            put(lane, dispatches)
            queue.put(lane, dispatches)

        host.queue.put = both  # type: ignore[method-assign]
        reply = host.queue.reply

        def replied(address: str, replies: Sequence[object]) -> None:
            (queue.reply if address == "process/second" else reply)(address, replies)  # type: ignore[arg-type]

        host.queue.reply = replied  # type: ignore[method-assign]
        second = WorkerProcess(
            registry, queue, host.log, host.reader, process="second", clock=system_ms, now_s=time.monotonic
        )
        second.start(["default"])
        try:
            yield dagbok
        finally:
            await second.stop(5.0)


class Handing(MemoryQueue):
    """A queue between processes that hands out by itself. `said`: attempts that it was told to be settled."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[AttemptKey] = []
        self.moved = asyncio.Event()

    def serve(self, lane: Lane, taker: Taker) -> None:
        return

    def freed(self, lane: Lane) -> None:
        return

    def settled(self, lane: Lane, key: AttemptKey) -> None:
        self.said.append(key)
        self.moved.set()

    def leave(self, lane: Lane) -> None:
        return

    async def settled_times(self, count: int) -> None:
        """Wait until it was told so often."""
        while len(self.said) < count:
            self.moved.clear()
            await self.moved.wait()


async def test_what_comes_again_of_an_attempt_that_is_claimed_and_runs_is_settled_at_once(tmp_path: Path) -> None:
    """As after a change of a group on Kafka: a queue that waited for its end would keep all that came behind it."""
    work = Work()

    @worker("long")
    async def long(task: TaskContext) -> Outcome:
        return Outcome.candidate(await work.begin("work"))

    registry, queue, sent = Registry(), Handing(), list[tuple[Lane, Sequence[Dispatch]]]()
    registry.add(long)
    async with hosted(tmp_path) as dagbok:
        host = dagbok.host
        # By its name, since it is not gone as long as the host lives.
        name, put, reply = host.member.process, host.queue.put, host.queue.reply

        def other(lane: Lane, dispatches: Sequence[Dispatch]) -> None:
            if lane[0] == "work":
                sent.append((lane, dispatches))
                queue.put(lane, dispatches)
            else:
                put(lane, dispatches)

        def replied(address: str, replies: Sequence[object]) -> None:
            for heard in (queue.reply, reply):
                heard(address, replies)  # type: ignore[arg-type]

        host.queue.put = other  # type: ignore[method-assign]
        host.queue.reply = replied  # type: ignore[method-assign]
        second = WorkerProcess(
            registry, queue, host.log, host.reader, process=name, clock=system_ms, now_s=time.monotonic
        )
        second.start(["default"])
        run = await dagbok.start(spec("long", id="only"))
        await work.until("work", 1)
        await queue.settled_times(1)
        queue.put(*sent[0])
        await queue.settled_times(2)
        work.go_on["work"].set()
        assert (await dagbok.wait(run)).succeeded
        assert work.began["work"] == 1
        await second.stop(5.0)


async def test_of_an_attempt_that_ran_twice_one_result_counts(tmp_path: Path) -> None:
    work = Work()
    async with two_processes(tmp_path, definitions(work)) as dagbok:
        run = await dagbok.start(spec("pure", verifier="judge", id="only"))
        await work.until("work", 2)
        work.go_on["work"].set()
        await work.until("verify", 2)
        work.go_on["verify"].set()
        result = await dagbok.wait(run)
        assert work.began == {"work": 2, "verify": 2}, "both processes ran both attempts"
        while len(refused := await events_of(dagbok, CommandRefused)) < 2:  # noqa: ASYNC110 - each is a commit
            await asyncio.sleep(0.01)
        assert len(await events_of(dagbok, CandidateSubmitted)) == 1
        assert len(await events_of(dagbok, VerdictRecorded)) == 1
        assert len(await events_of(dagbok, TaskVerified)) == (1 if result.succeeded else 0)
        # The outcome came too late for its attempt, the verdict for the whole run.
        assert [event.code for event in refused] == ["stale_attempt", "run_closed"]
        if result.succeeded:
            assert result.json() in (1, 2)
