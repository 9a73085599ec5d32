"""Several processes on one data folder: one decides, the others submit, steer, follow and work; and when the one ends,
however it ends, another decides."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from dagbok import Code, Dagbok, Limits, Refused
from dagbok.agents.hosting.folder import DataFolder
from dagbok.agents.hosting.presence import look_at_owner
from tests.support.audit import check_folder
from tests.support.hosts import spec
from tests.support.members import TIMEOUT_S, calls, calls_by_process, joined
from tests.support.scale import scale

TAKEN_OVER_S = 5.0
"""Far above what it takes (a second to notice, and the fold), for machines that do other things too."""


@pytest.fixture
async def folder(tmp_path: Path) -> AsyncIterator[Path]:
    """A data folder; what is in it at the end is right."""
    data = tmp_path / "data"
    yield data
    await check_folder(data, tmp_path)


async def until_called(folder: Path, times: int) -> None:
    """Wait until workers were called so often."""
    async with asyncio.timeout(TIMEOUT_S):
        while len(calls(folder)) < times:  # noqa: ASYNC110 - of other processes there is no event
            await asyncio.sleep(0.01)


async def test_who_has_no_workers_submits_steers_and_follows(folder: Path) -> None:
    async with joined(folder), joined(folder, serves=False) as client:
        run = await client.start(5, how="gate")
        assert await client.status(run) == "running"
        client.tell(pause=run)
        assert await client.says("accepted")
        assert await client.status(run) == "paused"
        client.tell(cancel=run)
        assert await client.says("accepted")
        client.tell(wait=run)
        assert await client.says("ended") == ["cancelled", []]
        client.tell(pause=run)
        assert await client.says("refused") == "run_closed"


async def test_work_is_spread_over_all_processes_that_host_workers(folder: Path) -> None:
    async with joined(folder) as one, joined(folder) as two, joined(folder) as three:
        run = await two.start(120, how="slow")
        await three.wait(run)
        shares = calls_by_process(folder)
        assert shares.keys() == {one.pid, two.pid, three.pid}
        assert min(shares.values()) >= 120 / 3 / 2
        assert set(Counter(task for _, task, _ in calls(folder)).values()) == {1}


async def test_when_the_owner_is_killed_another_goes_on_and_nothing_is_done_twice(folder: Path) -> None:
    async with joined(folder) as owner, joined(folder) as other, joined(folder, own="never", serves=False) as client:
        done = await client.start(6, name="first")
        await client.wait(done)
        run = await client.start(6, how="gate")
        await until_called(folder, 12)
        held = {task for pid, task, _ in calls(folder)[6:] if pid == owner.pid}
        other.tell(wait=run)
        client.tell(wait=run)
        begun_s = time.monotonic()
        await owner.kill()
        assert await other.says("owned")
        assert time.monotonic() - begun_s < TAKEN_OVER_S
        # What the dead one had claimed is lost at once, though a lease lasts a minute.
        await until_called(folder, 12 + min(1, len(held)))
        (folder / "gate").touch()
        for member in (other, client):
            assert await member.succeeded() == list(range(6))
        assert time.monotonic() - begun_s < 2 * TAKEN_OVER_S
        again = Counter(task for _, task, _ in calls(folder)[6:])
        assert {task for task, times in again.items() if times == 2} == held
        # And the new one decides what comes.
        await client.wait(await client.start(3, name="last"))


async def test_an_owner_that_leaves_hands_over_at_once(folder: Path) -> None:
    async with joined(folder) as owner, joined(folder) as other:
        run = await other.start(8, how="gate")
        await until_called(folder, 8)
        other.tell(wait=run)
        await owner.leave()
        assert await other.says("owned")
        (folder / "gate").touch()
        assert await other.succeeded() == list(range(8))
        # Handed back is not lost: no attempt was spent.
        assert {epoch for _, _, epoch in calls(folder)} == {1, 2}


async def test_a_stopped_owner_is_named_keeps_the_folder_and_loses_nothing(folder: Path) -> None:
    async with joined(folder) as owner, joined(folder, serves=False) as other:
        run = await other.start(4, how="gate")
        await until_called(folder, 4)
        owner.send(signal.SIGSTOP)
        other.tell(pause=run)
        async with asyncio.timeout(TIMEOUT_S):
            while (seen := look_at_owner(DataFolder(folder))).state != "silent":  # noqa: ASYNC110 - nor of one stopped
                await asyncio.sleep(0.05)
        assert seen.pid == owner.pid
        assert f"owner not responding: process {owner.pid} has owned" in str(seen)
        # Nobody has taken over, and what was asked waits.
        assert await other.status(run) == "running"
        owner.send(signal.SIGCONT)
        assert await other.says("accepted")
        assert await other.status(run) == "paused"
        assert look_at_owner(DataFolder(folder)).pid == owner.pid
        other.tell(resume=run)
        assert await other.says("accepted")
        (folder / "gate").touch()
        await other.wait(run)
        assert len(calls(folder)) == 4


async def test_tenants_see_their_own_runs_from_every_process(folder: Path) -> None:
    async with joined(folder) as owner, joined(folder) as other:
        run = await owner.start(3, tenant="acme", how="gate")
        assert await other.status(run, tenant="acme") == "running"
        assert await other.status(run, tenant="rival") is None
        other.tell(cancel=run, tenant="rival")
        assert await other.says("refused") == "not_found"
        other.tell(wait=run, tenant="rival")
        assert await other.says("refused") == "not_found"
        theirs = await other.start(3, tenant="rival", name="theirs")
        await owner.wait(theirs, tenant="rival")
        (folder / "gate").touch()
        await other.wait(run, tenant="acme")


@pytest.mark.parametrize("number", range(scale(3, 100)))
async def test_of_two_that_start_at_the_very_same_moment_one_decides_and_both_work(number: int, folder: Path) -> None:
    async with AsyncExitStack() as stack:
        one, two = await asyncio.gather(
            stack.enter_async_context(joined(folder)), stack.enter_async_context(joined(folder))
        )
        run, same = await asyncio.gather(one.start(20, key="k"), two.start(20, key="k"))
        assert run == same
        await asyncio.gather(one.wait(run), two.wait(run))
        assert len(calls(folder)) == 20
        await one.leave()
        await two.leave()


async def test_what_a_killed_worker_process_held_runs_elsewhere(folder: Path) -> None:
    async with joined(folder) as owner, joined(folder) as other:
        run = await owner.start(8, how="gate")
        await until_called(folder, 8)
        held = [task for pid, task, _ in calls(folder) if pid == other.pid]
        assert held
        await other.kill()
        (folder / "gate").touch()
        await owner.wait(run)
        assert sorted(task for pid, task, epoch in calls(folder) if epoch == 2) == sorted(held)


async def test_all_leave_at_once_and_what_they_held_is_handed_back(folder: Path) -> None:
    async with joined(folder) as owner, joined(folder) as other:
        run = await owner.start(8, how="gate")
        await until_called(folder, 8)
        await asyncio.gather(owner.leave(), other.leave())
    (folder / "gate").touch()
    async with joined(folder) as later:
        begun_s = time.monotonic()
        await later.wait(run)
        assert time.monotonic() - begun_s < TAKEN_OVER_S


async def test_the_same_methods_in_a_follower_of_this_process(folder: Path) -> None:
    async with (
        joined(folder) as owner,
        asyncio.timeout(TIMEOUT_S),
        Dagbok.embedded(folder, own="never", projector="none") as dagbok,
    ):
        run = await owner.start(3, how="gate")
        assert not dagbok.host.owns
        assert dagbok.progress(run).keys() <= {"ready", "running"}
        assert (await dagbok.set_limits(run, Limits(max_attempts=7))).accepted
        assert (await dagbok.list_runs()).runs[0].run == run
        with pytest.raises(Refused) as refused:
            await dagbok.resolve(run, "t0")
        assert refused.value.code == Code.VERSION_CONFLICT
        with pytest.raises(Refused) as refused:
            await dagbok.start(spec("work"))
        assert refused.value.code == Code.VERIFIER_UNAVAILABLE
        events = asyncio.create_task(_types(dagbok, run))
        (folder / "gate").touch()
        result = await dagbok.wait(run)
        assert {root: artifacts.json() for root, artifacts in result.roots.items()} == {f"t{n}": n for n in range(3)}
        types = await events
        assert (types[0], types[-1]) == ("RunStarted", "RunSucceeded")


async def _types(dagbok: Dagbok, run: str) -> list[str]:
    return [event.type async for event in dagbok.events(run)]
