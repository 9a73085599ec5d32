"""`Dagbok` in a process that does not decide: the same methods, the same answers, and the same object goes on when its
process becomes the owner."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dagbok import Code, Dagbok, Outcome, Refused, TaskContext, worker
from dagbok.agents.hosting import embedded, tail
from dagbok.agents.hosting.embedded import EmbeddedHost, Own
from dagbok.agents.hosting.ownership import Ownership
from dagbok.agents.workers.outbox import REPEAT_AFTER_S
from dagbok.events.envelope import Reply
from dagbok.events.errors import InvalidInput, LogCorrupt
from dagbok.events.ids import run_stream
from dagbok.listing import RunEvent
from tests.support.hosts import TIMEOUT_S, spec, yes

GATE = asyncio.Event()


@worker("waits")
async def waits(task: TaskContext) -> Outcome:
    """Until the gate is open."""
    await GATE.wait()
    return Outcome.candidate(task.task_id)


@worker("fails")
async def fails(task: TaskContext) -> Outcome:
    """Until somebody has a note for it."""
    if task.problem is None:
        raise ValueError("it cannot be")
    return Outcome.candidate(task.task_id)


@pytest.fixture(autouse=True)
def _closed_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.GATE", asyncio.Event())


@asynccontextmanager
async def member(folder: Path, own: Own = "auto", *, serve: bool = True) -> AsyncIterator[Dagbok]:
    """One of the hosts of this process on a folder."""
    async with (
        asyncio.timeout(TIMEOUT_S),
        Dagbok.embedded(folder, yes, waits, fails, own=own, serve=serve, projector="none") as dagbok,
    ):
        yield dagbok


async def seen(dagbok: Dagbok, run: str, after: int = 0) -> list[RunEvent]:
    """All events of a run."""
    return [event async for event in dagbok.events(run, after=after)]


async def test_a_foreign_tenant_reads_no_events_and_lists_no_runs(tmp_path: Path) -> None:
    async with member(tmp_path) as owner, member(tmp_path, "never") as follower:
        run = await owner.start(spec("waits"), tenant="acme")
        for dagbok in (owner, follower):
            with pytest.raises(Refused) as refused:
                await anext(dagbok.events(run, tenant="rival"))
            assert refused.value.code == Code.NOT_FOUND
            assert (await dagbok.list_runs(tenant="rival")).runs == []
            assert [found.run for found in (await dagbok.list_runs(tenant="acme")).runs] == [run]


async def test_lists_come_in_pages_and_are_filtered(tmp_path: Path) -> None:
    async with member(tmp_path) as owner:
        runs = [await owner.start(spec("waits"), project=f"p{number % 2}") for number in range(7)]
        await owner.cancel(runs[0], project="p0")
        found, cursor = list[str](), None
        while True:
            page = await owner.list_runs(project=None, limit=3, cursor=cursor)
            found += [item.run for item in page.runs]
            cursor = page.cursor
            if cursor is None:
                break
        assert sorted(found) == sorted(runs)
        assert len(found) == 7
        assert [item.run for item in (await owner.list_runs(project=None, status="cancelled")).runs] == [runs[0]]
        assert {item.run for item in (await owner.list_runs(project="p1")).runs} == set(runs[1::2])
        (summary,) = (await owner.list_runs(project="p0", status="cancelled")).runs
        assert (summary.counts, summary.user) == ({"cancelled": 1}, "local")
        with pytest.raises(InvalidInput, match="is no cursor"):
            await owner.list_runs(cursor="nonsense")


async def test_waits_and_watchers_go_on_in_the_process_that_takes_over(tmp_path: Path) -> None:
    async with member(tmp_path) as owner:
        run = await owner.start([spec("waits", id=f"t{n}") for n in range(3)])
        async with member(tmp_path) as heir:
            waiting = asyncio.create_task(heir.wait(run))
            events = asyncio.create_task(seen(heir, run))
            other = asyncio.create_task(heir.run(spec("waits", id="mine")))
            await asyncio.sleep(0)
            await owner.host.close()
            await heir.host.owned.wait()
            assert heir.host.owns
            GATE.set()
            assert (await waiting).succeeded
            assert (await other).json() == "mine"
            numbers = [event.seq for event in await events]
            assert numbers == list(range(1, len(numbers) + 1))


async def test_an_answer_that_was_lost_is_found_in_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with member(tmp_path) as owner, member(tmp_path, "never", serve=False) as follower:
        run = await owner.start(spec("waits"))

        def swallow(address: str, replies: Sequence[Reply]) -> None:
            """A queue may lose."""

        monkeypatch.setattr(owner.host.queue, "reply", swallow)
        began = asyncio.get_running_loop().time()
        assert (await follower.pause(run)).events == ("RunPaused",)
        assert asyncio.get_running_loop().time() - began < 5
        monkeypatch.undo()


async def test_claims_that_a_dead_owner_did_not_answer_are_answered_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with member(tmp_path, serve=False) as owner, member(tmp_path) as heir:
        swallowed = asyncio.Event()
        monkeypatch.setattr(owner.host.queue, "reply", lambda address, replies: swallowed.set())
        run = await owner.start(spec("waits"))
        while owner.progress(run) != {"running": 1}:  # noqa: ASYNC110 - who claimed it heard nothing of that
            await asyncio.sleep(0.01)
        assert swallowed.is_set()
        await owner.host.close()
        GATE.set()
        began = asyncio.get_running_loop().time()
        assert (await heir.wait(run)).succeeded
        assert asyncio.get_running_loop().time() - began < REPEAT_AFTER_S / 2


async def test_a_follower_follows_only_what_somebody_looks_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [0.0]
    async with member(tmp_path) as owner, member(tmp_path, "never", serve=False) as follower:
        first, second = [await owner.start(spec("waits")) for _ in range(2)]
        watch: tail.Tail = follower.host._tail
        monkeypatch.setattr(watch, "_now_s", lambda: now_s[0])
        assert watch._state.runs == {}
        assert follower.status(first) == "running"
        assert watch._state.runs.keys() == {run_stream(first)}
        waiting = asyncio.create_task(follower.wait(second))
        while run_stream(second) not in watch._state.runs:  # noqa: ASYNC110 - no event tells what is followed
            await asyncio.sleep(0)
        now_s[0] = tail.KEEP_S + 1
        await owner.pause(first)
        while run_stream(first) in watch._state.runs:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert watch._state.runs.keys() == {run_stream(second)}
        assert follower.status(first) == "paused"
        GATE.set()
        assert (await waiting).succeeded


async def test_a_takeover_that_fails_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fold, failures = Ownership.begin, [OSError("no memory"), OSError("no memory")]

    async def begin(self: Ownership) -> None:
        if failures:
            raise failures.pop()
        await fold(self)

    monkeypatch.setattr(embedded, "RETRY_S", 0.01)
    async with member(tmp_path) as owner, member(tmp_path) as heir:
        monkeypatch.setattr(Ownership, "begin", begin)
        await owner.host.close()
        await heir.host.owned.wait()
        assert failures == []
        GATE.set()
        assert (await heir.run(spec("waits"))).succeeded


async def test_a_member_that_never_owns_leaves_the_folder_alone(tmp_path: Path) -> None:
    async with member(tmp_path, "never") as lonely:
        assert str(lonely.host.owner_seen()) == f"no process owns {tmp_path}"
        starting = asyncio.create_task(lonely.run(spec("waits")))
        GATE.set()
        assert not (await asyncio.wait((starting,), timeout=0.2))[0]
        async with member(tmp_path, "must", serve=False) as owner:
            assert isinstance(owner.host, EmbeddedHost)
            assert (await starting).succeeded


async def test_an_owner_that_cannot_go_on_does_not_keep_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken() -> int:
        raise LogCorrupt("as this process reads it")

    async with member(tmp_path) as owner, member(tmp_path) as heir:
        run = await owner.start(spec("waits"))
        monkeypatch.setattr(owner.host.owner, "_step", broken)
        assert (await heir.pause(run)).accepted
        assert heir.host.owns
        with pytest.raises(LogCorrupt, match="as this process reads it"):
            await owner.pause(run)
