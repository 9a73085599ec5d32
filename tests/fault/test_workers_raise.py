"""Whatever a function raises, its attempt ends, and the next one runs; a closed or foreign Dagbok says so at once."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from dagbok import Candidate, Dagbok, DagbokError, Outcome, TaskContext, TaskSpec, verifier, worker
from dagbok.events.errors import LogLost

TIMEOUT_S = 30.0


class Odd(BaseException):
    """Nobody expects it."""


def raise_odd() -> None:
    raise Odd("odd")


def cancel_self() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()


def raise_exit() -> None:
    raise GeneratorExit


@pytest.mark.parametrize("act", [raise_odd, cancel_self, raise_exit])
async def test_an_attempt_ends_whatever_its_function_does(act: Callable[[], None], tmp_path: Path) -> None:
    @worker("odd", pure=True)
    async def odd(task: TaskContext) -> Outcome:
        if task.attempt == 1:
            act()
            await asyncio.sleep(0)
        return Outcome.candidate(task.attempt)

    @verifier("check", version="1")
    async def check(candidate: Candidate, task: TaskContext) -> bool:
        return True

    async with asyncio.timeout(TIMEOUT_S), Dagbok.embedded(tmp_path, odd, check, projector="none") as dagbok:
        result = await dagbok.run(TaskSpec(goal="g", worker="odd", verifier="check"))
    assert result.json() == 2


async def test_a_closed_dagbok_answers_at_once_and_wakes_who_waits(tmp_path: Path) -> None:
    async with Dagbok.embedded(tmp_path, projector="none") as dagbok:
        pass
    with pytest.raises(DagbokError, match="closed"):
        async with asyncio.timeout(TIMEOUT_S):
            await dagbok.start(TaskSpec(goal="g", worker="w", verifier="v"))


async def test_removed_events_are_a_loss_and_not_a_doubt(tmp_path: Path) -> None:
    @worker("plain", pure=True)
    async def plain(task: TaskContext) -> Outcome:
        return Outcome.candidate(1)

    @verifier("check", version="1")
    async def check(candidate: Candidate, task: TaskContext) -> bool:
        return True

    async with Dagbok.embedded(tmp_path, plain, check, projector="none") as dagbok:
        await dagbok.run(TaskSpec(goal="g", worker="plain", verifier="check"))
    with sqlite3.connect(tmp_path / "log.db") as database:
        database.execute("delete from events where rowid > (select max(rowid) - 2 from events)")
    database.close()
    with pytest.raises(LogLost):
        async with asyncio.timeout(TIMEOUT_S), Dagbok.embedded(tmp_path, plain, check, projector="none"):
            pass

