"""Attempts that nobody wants any more: functions are stopped where that is possible, and told where it is not."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from dagbok import Outcome, TaskContext, worker
from tests.support.hosts import TIMEOUT_S, hosted, spec


async def test_cancel_stops_an_async_function_and_tells_a_sync_one(tmp_path: Path) -> None:
    began, stopped, told = threading.Semaphore(0), asyncio.Event(), threading.Event()

    @worker("awaits")
    async def awaits(task: TaskContext) -> Outcome:
        began.release()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return Outcome.candidate("never")

    @worker("loops")
    def loops(task: TaskContext) -> Outcome:
        began.release()
        while not task.cancelled:
            threading.Event().wait(0.01)
        told.set()
        return Outcome.candidate("late")

    async with hosted(tmp_path, awaits, loops) as dagbok:
        run = await dagbok.start([spec("awaits"), spec("loops")])
        for _ in range(2):
            await asyncio.to_thread(began.acquire, timeout=TIMEOUT_S)
        await dagbok.cancel(run)
        await asyncio.wait_for(stopped.wait(), 5)
        assert await asyncio.to_thread(told.wait, 5)
        assert (await dagbok.wait(run)).counts == {"cancelled": 2}


async def test_a_function_that_swallows_its_cancellation_harms_nobody(tmp_path: Path) -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    @worker("stubborn", concurrency=1)
    async def stubborn(task: TaskContext) -> Outcome:
        if task.inputs == "quick":
            await asyncio.sleep(0)
            return Outcome.candidate("quick")
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.set()
        return Outcome.candidate("late")

    async with hosted(tmp_path, stubborn) as dagbok:
        run = await dagbok.start(spec("stubborn"))
        await began.wait()
        await dagbok.cancel(run)
        await ended.wait()
        assert (await dagbok.run([spec("stubborn", inputs="quick") for _ in range(3)])).succeeded


async def test_closing_tells_a_sync_function(tmp_path: Path) -> None:
    began, told = threading.Event(), threading.Event()

    @worker("loops")
    def loops(task: TaskContext) -> Outcome:
        began.set()
        while not task.cancelled:
            threading.Event().wait(0.01)
        told.set()
        return Outcome.candidate("late")

    async with hosted(tmp_path, loops) as dagbok:
        await dagbok.start(spec("loops"))
        await asyncio.to_thread(began.wait, TIMEOUT_S)
    assert await asyncio.to_thread(told.wait, 5)
