"""Sessions in running hosts: what a worker put down is there for the next attempt, however the one before ended."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from pathlib import Path

import pytest

from dagbok import Candidate, Limits, Outcome, Refused, TaskContext, TaskSpec, verifier, worker
from dagbok.agents.workers.sessions.operations import add
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput
from dagbok.events.run.events import SessionResumed, SessionSuspended
from dagbok.testing import context
from tests.support.hosts import events_of, hosted

TURNS = 40


@verifier("any", version="1")
def anything(candidate: Candidate, task: TaskContext) -> bool:
    return True


def talk(worker: str = "talks", **more: object) -> TaskSpec:
    return TaskSpec.model_validate({"id": "talk", "goal": "talk", "worker": worker, "verifier": "any", **more})


@worker("talks")
async def talks(task: TaskContext) -> Outcome:
    """Breaks in the middle of each attempt."""
    said = task.session.load() or {"said": [], "attempts": 0}
    await task.session.save({**said, "attempts": said["attempts"] + 1})
    for number in range(len(said["said"]), TURNS):
        said = task.session.load()
        await task.session.save({**said, "said": [*said["said"], f"{number}: " + "x" * 50]})
        if number % 15 == 14:
            raise ValueError("lost its thread")
    return Outcome.candidate(task.session.load())


async def test_the_next_attempt_goes_on_where_the_last_one_was_put_down(tmp_path: Path) -> None:
    async with hosted(tmp_path, talks, anything) as dagbok:
        result = await dagbok.run(talk())
        assert result.json() == {"said": [f"{n}: " + "x" * 50 for n in range(TURNS)], "attempts": 3}
        put_down = await events_of(dagbok, SessionSuspended)
        resumed = await events_of(dagbok, SessionResumed)
    assert [event.turn for event in put_down] == list(range(1, TURNS + 4))
    assert [event.turn for event in resumed] == [16, 32]
    written = sum(event.part.size_bytes for event in put_down)
    assert written < 10 * put_down[-1].size_bytes, "each byte is written about log2(turns) times, not once a turn"


@worker("blocks", concurrency=1)
def blocks(task: TaskContext) -> Outcome:
    task.session.save_blocking({"n": (task.session.load() or {"n": 0})["n"] + 1})
    if task.attempt < 3:
        raise ValueError("not yet")
    return Outcome.candidate(task.session.load())


async def test_a_function_in_a_thread_puts_down_its_session_too(tmp_path: Path) -> None:
    async with hosted(tmp_path, blocks, anything) as dagbok:
        assert (await dagbok.run(talk("blocks"))).json() == {"n": 3}


@worker("large")
async def large(task: TaskContext) -> Outcome:
    await task.session.save({"lines": ["y" * 70_000]})
    await task.session.change([add(("lines",), ["small"])])
    before = task.session.turn
    await task.session.save(task.session.load())
    assert task.session.turn == before, "nothing differs, so nothing is written"
    return Outcome.candidate("done")


async def test_every_turn_can_be_looked_at(tmp_path: Path) -> None:
    async with hosted(tmp_path, large, talks, anything) as dagbok:
        run = (await dagbok.run(talk("large"))).run
        last = await dagbok.session(run, "talk")
        assert (last.turn, last.value, last.turns) == (2, {"lines": ["y" * 70_000, "small"]}, [1, 2])
        assert (await dagbok.session(run, "talk", turn=1)).value == {"lines": ["y" * 70_000]}
        with pytest.raises(Refused) as missing:
            await dagbok.session(run, "talk", turn=3)
    assert missing.value.code is Code.NOT_FOUND
    assert "1 to 2" in missing.value.advice


async def test_a_session_can_be_looked_at_as_of_any_event(tmp_path: Path) -> None:
    async with hosted(tmp_path, large, takes, anything) as dagbok:
        run = (await dagbok.run(talk("large"))).run
        events = [each async for each in dagbok.events(run)]
        put_down = [each.seq for each in events if each.type == "SessionSuspended"]
        assert len(put_down) == 2
        for seq in range(put_down[0], len(events) + 1):
            found = await dagbok.session(run, "talk", event=seq)
            early = seq < put_down[1]
            assert (found.turns, found.value["lines"][1:]) == (([1], []) if early else ([1, 2], ["small"]))
        forked = await dagbok.fork(run, "talk", event=put_down[1] - 1)
        assert forked.turn == 1
        with pytest.raises(Refused, match="has no session"):
            await dagbok.session(run, "talk", event=put_down[0] - 1)
        with pytest.raises(Refused, match=f"has no event {len(events) + 1}"):
            await dagbok.session(run, "talk", event=len(events) + 1)
        with pytest.raises(InvalidInput, match="say when twice"):
            await dagbok.session(run, "talk", turn=1, event=3)


@worker("takes")
async def takes(task: TaskContext) -> Outcome:
    value = task.session.load()
    await task.session.change([add(("lines",), ["of the fork"])])
    return Outcome.candidate([len(value["lines"]), task.session.turn, len(task.session.load()["lines"])])


async def test_a_task_goes_on_with_the_session_of_another_and_leaves_that_alone(tmp_path: Path) -> None:
    async with hosted(tmp_path, large, takes, anything) as dagbok:
        run = (await dagbok.run(talk("large"))).run
        forked = await dagbok.fork(run, "talk", turn=1)
        other = await dagbok.run(talk("takes", session=forked))
        assert other.json() == [1, 2, 2]
        assert (await dagbok.session(other.run, "talk")).turns == [1, 2]
        assert (await dagbok.session(run, "talk")).value["lines"][1:] == ["small"]
        with pytest.raises(Refused):
            await dagbok.session(run, "talk", tenant="rival")


@worker("greedy")
async def greedy(task: TaskContext) -> Outcome:
    for size in (10, 1_000, 10):
        await task.session.save("z" * size)
    return Outcome.candidate("never")


async def test_a_session_above_the_limit_of_the_run_ends_the_task_and_not_its_attempts(tmp_path: Path) -> None:
    async with hosted(tmp_path, greedy, anything) as dagbok:
        result = await dagbok.run(talk("greedy"), limits=Limits(max_total_artifact_bytes=500))
        assert (result.status, result.failed) == ("failed", {"talk": "worker_failed"})
        assert len(await events_of(dagbok, SessionSuspended)) == 1


@worker("hurried")
async def hurried(task: TaskContext) -> Outcome:
    """Gives up waiting for what goes on all the same, and says the next thing at once."""
    for number in range(5):
        try:
            async with asyncio.timeout(0):
                await task.session.save({"n": number})
        except TimeoutError:
            pass
    await task.session.save({"n": "last"})
    return Outcome.candidate([task.session.turn, task.session.load()])


async def test_a_save_that_nobody_waits_for_is_followed_by_the_next(tmp_path: Path) -> None:
    async with hosted(tmp_path, hurried, anything) as dagbok:
        turn, value = (await dagbok.run(talk("hurried"))).json()
        assert value == {"n": "last"}
        assert turn == 6


async def test_a_save_that_is_refused_when_its_attempt_is_over_is_no_error_of_the_loop() -> None:
    told: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, error: told.append(error))
    session, cancelled, refused = context().session, asyncio.Event(), asyncio.Event()

    async def refuse(turn: int, keep: int, part: bytes) -> None:
        await cancelled.wait()
        refused.set()
        raise Refused(Code.RUN_CLOSED, "the run is cancelled")

    session._put_down = refuse
    saving = asyncio.ensure_future(session.save({"n": 1}))
    await asyncio.sleep(0)
    saving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await saving
    cancelled.set()
    await refused.wait()
    await asyncio.sleep(0)
    gc.collect()
    assert told == []


@worker("both")
async def both(task: TaskContext) -> Outcome:
    await asyncio.gather(*(task.session.save({"n": number}) for number in range(10)))
    return Outcome.candidate(task.session.turn)


async def test_saves_at_once_are_written_one_after_the_other(tmp_path: Path) -> None:
    async with hosted(tmp_path, both, anything) as dagbok:
        assert (await dagbok.run(talk("both"))).json() == 10
        assert Counter(event.turn for event in await events_of(dagbok, SessionSuspended)) == Counter(range(1, 11))
