"""Sync functions that do not stop: they hold up neither the work behind them nor the end of the program."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path

import pytest

from dagbok import Outcome, TaskContext, worker
from dagbok.agents.workers.threads import DaemonThreads
from tests.support.hosts import TIMEOUT_S, hosted, spec

STUBBORN = """
import asyncio, sys, threading
from pathlib import Path
from dagbok import Dagbok, Outcome, TaskSpec, verifier, worker

began = threading.Event()

@worker("stubborn")
def stubborn(task):
    began.set()
    threading.Event().wait()
    return Outcome.candidate(1)

@verifier("yes", version="1")
def yes(candidate, task):
    return True

async def main():
    async with Dagbok.embedded(Path(sys.argv[1]), stubborn, yes, projector="none") as dagbok:
        await dagbok.start(TaskSpec(goal="g", worker="stubborn", verifier="yes"))
        await asyncio.to_thread(began.wait)
    print("closed", flush=True)

asyncio.run(main())
"""


async def test_a_function_over_its_timeout_gives_its_place_to_the_next(tmp_path: Path) -> None:
    release = threading.Event()

    @worker("stubborn", concurrency=1)
    def stubborn(task: TaskContext) -> Outcome:
        if task.inputs == "stubborn":
            release.wait(TIMEOUT_S)
        return Outcome.candidate(task.inputs)

    try:
        async with hosted(tmp_path, stubborn) as dagbok:
            cut = spec("stubborn", inputs="stubborn", timeout_s=0.1, max_attempts=1)
            assert list((await dagbok.run(cut)).failed.values()) == ["timeout"]
            assert (await dagbok.run([spec("stubborn", inputs="quick") for _ in range(3)])).succeeded
            assert not release.is_set()
    finally:
        release.set()


async def test_a_program_ends_although_a_function_never_returns(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", STUBBORN, str(tmp_path)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    try:
        output, errors = await asyncio.wait_for(process.communicate(), TIMEOUT_S)
    finally:
        if process.returncode is None:
            process.kill()
    assert (process.returncode, output) == (0, b"closed\n"), errors.decode()


async def test_no_more_functions_run_at_once_than_there_are_threads() -> None:
    threads, go_on = DaemonThreads("test", 2), threading.Event()
    running, most = list[int](), list[int]()
    turn = threading.Lock()

    def count() -> None:
        with turn:
            running.append(1)
            most.append(len(running))
        go_on.wait(TIMEOUT_S)
        with turn:
            running.pop()

    calls = [asyncio.create_task(threads.run(count)) for _ in range(10)]
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(*calls)
    threads.close()
    assert max(most) <= 2


async def test_an_abandoned_call_that_has_not_begun_never_begins() -> None:
    threads, began, go_on, ran = DaemonThreads("test", 1), asyncio.Event(), threading.Event(), list[str]()
    loop = asyncio.get_running_loop()

    def first() -> str:
        loop.call_soon_threadsafe(began.set)
        go_on.wait(TIMEOUT_S)
        return "first"

    running = asyncio.create_task(threads.run(first))
    await began.wait()
    second = asyncio.create_task(threads.run(lambda: ran.append("second")))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    go_on.set()
    assert await running == "first"
    await threads.run(lambda: ran.append("third"))
    assert ran == ["third"]
    threads.close()
    with pytest.raises(RuntimeError, match="closed"):
        await threads.run(lambda: None)


async def test_what_waits_when_a_call_is_abandoned_runs_at_once() -> None:
    threads, began, go_on = DaemonThreads("test", 1), asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def stubborn() -> None:
        loop.call_soon_threadsafe(began.set)
        go_on.wait(TIMEOUT_S)

    running = asyncio.create_task(threads.run(stubborn))
    await began.wait()
    waiting = asyncio.create_task(threads.run(lambda: "ran"))
    await asyncio.sleep(0)
    running.cancel()
    try:
        assert await asyncio.wait_for(waiting, TIMEOUT_S) == "ran"
    finally:
        go_on.set()
    threads.close()
