"""The queue of a folder between real processes, some of which are killed, stopped or slow."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dagbok.agents.queue import AttemptKey, FolderQueue
from dagbok.events.envelope import CancelHint
from tests.contract.queue_sites import LANE, dispatch, free, open_queue, serve, unseen, until

REPOSITORY = Path(__file__).resolve().parents[2]


GONE: set[str] = set()
"""Processes that are surely gone."""

LOST: list[AttemptKey] = []
"""What the owner was told that they had."""


class Taker:
    """A running `tests.support.queue_taker`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.began: list[int] = []
        self.ready = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            if line.strip().isdigit():
                self.began.append(int(line))
            else:
                self.ready.set()

    async def kill(self) -> None:
        """At once, whatever it is doing."""
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        await self._reading


@asynccontextmanager
async def taker(folder: Path, name: str, places: int, work_ms: int) -> AsyncIterator[Taker]:
    arguments = ("-m", "tests.support.queue_taker", str(folder), name, str(places), str(work_ms))
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, cwd=REPOSITORY, stdout=asyncio.subprocess.PIPE
    )
    running = Taker(process)
    try:
        await asyncio.wait_for(running.ready.wait(), 20)
        yield running
    finally:
        await running.kill()


@pytest.fixture
async def owner(tmp_path: Path) -> AsyncIterator[FolderQueue]:
    """The queue of the owner. A process counts as stopped after a second and a half; the operating system would say
    whether it is gone, and here the tests do."""
    GONE.clear()
    LOST.clear()
    queue = open_queue(tmp_path, "owner", stale_s=1.5, is_gone=GONE.__contains__, lost=LOST)
    queue.put(LANE, ())
    await queue.start()
    yield queue
    await queue.close()


async def test_equal_processes_share_the_work_equally_and_all_of_it_is_done_once(
    tmp_path: Path, owner: FolderQueue
) -> None:
    count = 200
    async with taker(tmp_path, "a", 4, 20) as a, taker(tmp_path, "b", 4, 20) as b:
        await until(lambda: free(owner, "work") == {"a": 4, "b": 4})
        owner.put(LANE, [dispatch(number) for number in range(count)])
        await until(lambda: len(a.began) + len(b.began) == count)
        assert sorted(a.began + b.began) == list(range(count))
        assert min(len(a.began), len(b.began)) >= 0.35 * count


async def test_a_slow_process_does_not_hoard(tmp_path: Path, owner: FolderQueue) -> None:
    async with taker(tmp_path, "slow", 4, -1) as slow, taker(tmp_path, "quick", 4, 5) as quick:
        await until(lambda: free(owner, "work") == {"slow": 4, "quick": 4})
        owner.put(LANE, [dispatch(number) for number in range(100)])
        await until(lambda: len(quick.began) == 96)
        assert len(slow.began) == 4


async def test_what_a_killed_process_had_is_told_and_what_waited_for_it_goes_to_others(
    tmp_path: Path, owner: FolderQueue
) -> None:
    async with taker(tmp_path, "dies", 4, -1) as dies, taker(tmp_path, "stays", 1, 1) as stays:
        await until(lambda: free(owner, "work") == {"dies": 4, "stays": 1})
        owner.put(LANE, [dispatch(number) for number in range(4)])
        await until(lambda: len(dies.began) + len(stays.began) == 4 and unseen(owner) == 0)
        held = list(dies.began)
        owner.hint(LANE, [CancelHint(run="r", task="t", epoch=held[0])])
        await dies.kill()
        GONE.add("dies")
        await until(lambda: sorted(LOST) == sorted(("r", "t", epoch) for epoch in held[1:]))
        owner.put(LANE, [dispatch(epoch) for epoch in held[1:]])
        await until(lambda: set(held[1:]) <= set(stays.began))


async def test_what_a_stopped_process_has_not_seen_goes_to_others_and_it_serves_again_when_it_goes_on(
    tmp_path: Path, owner: FolderQueue
) -> None:
    async with taker(tmp_path, "stops", 8, 1) as stops:
        await until(lambda: free(owner, "work") == {"stops": 8})
        stops.process.send_signal(signal.SIGSTOP)
        owner.put(LANE, [dispatch(number) for number in range(8)])
        async with taker(tmp_path, "goes", 2, 1) as goes:
            began_s = time.monotonic()
            await until(lambda: len(goes.began) == 8)
            assert time.monotonic() - began_s < 10
            stops.process.send_signal(signal.SIGCONT)
            await goes.kill()
            GONE.add("goes")
            await until(lambda: free(owner, "work") == {"stops": 8})
            owner.put(LANE, [dispatch(number) for number in range(100, 108)])
            await until(lambda: set(range(100, 108)) <= set(stops.began))


async def test_an_idle_process_has_its_dispatch_in_milliseconds(tmp_path: Path, owner: FolderQueue) -> None:
    latencies_s: list[float] = []
    async with taker(tmp_path, "a", 100, 0) as a:
        await until(lambda: free(owner, "work") == {"a": 100})
        for number in range(15):
            await asyncio.sleep(0.05)
            began_s = time.monotonic()
            owner.put(LANE, [dispatch(number)])
            await until(lambda count=number + 1: len(a.began) == count)  # type: ignore[misc]
            latencies_s.append(time.monotonic() - began_s)
    assert sorted(latencies_s)[len(latencies_s) // 2] < 0.05


async def test_a_file_deleted_under_real_processes_costs_no_attempt_that_is_put_again(
    tmp_path: Path, owner: FolderQueue
) -> None:
    async with taker(tmp_path, "a", 4, 1) as a, taker(tmp_path, "b", 4, 1) as b:
        await until(lambda: free(owner, "work") == {"a": 4, "b": 4})
        for number in range(60):
            owner.put(LANE, [dispatch(number)])
            if number in (20, 40):
                (tmp_path / "queue.db").unlink(missing_ok=True)
            await asyncio.sleep(0.002)

        def all_began() -> bool:
            missing = set(range(60)) - set(a.began) - set(b.began)
            owner.put(LANE, [dispatch(number) for number in missing])
            return not missing

        await until(all_began)
        serve(owner, work=0)
