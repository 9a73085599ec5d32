"""A worker made of layers: its session is in the log, turn by turn, and the next attempt goes on with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ClassVar

import pytest
from pydantic import BaseModel, Field

from dagbok import Candidate, Outcome, TaskContext, TaskSpec, verifier
from dagbok.agents.layers import Compositor, Growing, LayerConfig, LayerNode, NoLayerDeps, PlainLayer, PromptLayer
from dagbok.agents.layers.durable import LayeredAttempt, LayeredWorker
from dagbok.events.run.events import AttemptFailed, SessionSuspended
from dagbok.testing import context
from tests.support.hosts import events_of, hosted

TURNS = 6


class Notes(BaseModel):
    lines: Growing[str] = Field(default_factory=Growing)
    entered: int = 0
    resumed: int = 0


class NotesConfig(LayerConfig):
    title: str = "notes"


class NotesLayer(PlainLayer[NoLayerDeps, NotesConfig, Notes]):
    """Keeps lines; holds a resource."""

    open: ClassVar[int] = 0

    @asynccontextmanager
    async def resource_context(self) -> AsyncIterator[None]:
        NotesLayer.open += 1
        try:
            yield
        finally:
            NotesLayer.open -= 1

    async def on_context_create(self) -> None:
        assert self.config.title
        self.runtime_state.entered += 1

    async def on_context_resume(self) -> None:
        self.runtime_state.resumed += 1


def compositor(*more: LayerNode) -> Compositor:
    return Compositor([LayerNode("say", PromptLayer), LayerNode("notes", NotesLayer), *more])


@verifier("any", version="1")
def anything(candidate: Candidate, task: TaskContext) -> bool:
    return True


def talk(worker: str = "talks") -> TaskSpec:
    return TaskSpec(id="talk", goal="talk", worker=worker, verifier="any", max_attempts=9)


async def talks(attempt: LayeredAttempt) -> Outcome:
    """Fails behind every second turn."""
    notes = attempt.run.get_layer("notes", NotesLayer)
    said = 0
    while len(notes.runtime_state.lines) < TURNS:
        notes.runtime_state.lines.append(f"line {len(notes.runtime_state.lines)} of attempt {attempt.task.attempt}")
        await attempt.put_down()
        said += 1
        if said == 2 and len(notes.runtime_state.lines) < TURNS:
            raise ValueError("lost its thread")
    return Outcome.candidate(notes.runtime_state.model_dump())


async def test_the_next_attempt_resumes_the_layers(tmp_path: Path) -> None:
    worker = LayeredWorker(compositor(), talks, configs={"notes": {"title": "mine"}}).worker("talks")
    async with hosted(tmp_path, worker, anything) as dagbok:
        result = await dagbok.run(talk())
        assert result.json() == {
            "lines": [f"line {n} of attempt {n // 2 + 1}" for n in range(TURNS)],
            "entered": 1,
            "resumed": 2,
        }
        assert len(await events_of(dagbok, AttemptFailed)) == 2
        last = (await dagbok.session(result.run, "talk")).value
        entered = (await dagbok.session(result.run, "talk", turn=1)).value
        second = (await dagbok.session(result.run, "talk", turn=3)).value
        put_down = await events_of(dagbok, SessionSuspended)
    assert last["layers"]["notes"]["state"] == result_state(TURNS, 2)
    assert entered["layers"]["notes"]["state"] == {"lines": [], "entered": 1, "resumed": 0}
    assert second["layers"]["notes"]["state"]["lines"] == ["line 0 of attempt 1", "line 1 of attempt 1"]
    assert set(last["layers"]) == {"say", "notes"}
    assert len(put_down) >= TURNS
    assert NotesLayer.open == 0


def result_state(turns: int, resumed: int) -> dict[str, object]:
    return {"lines": [f"line {n} of attempt {n // 2 + 1}" for n in range(turns)], "entered": 1, "resumed": resumed}


async def test_a_turn_costs_what_is_new() -> None:
    written: list[int] = []
    task = context(inputs=None)
    real = task.session._put_down

    async def counted(turn: int, keep: int, part: bytes) -> None:
        written.append(len(part))
        await real(turn, keep, part)

    task.session._put_down = counted

    async def long(attempt: LayeredAttempt) -> Outcome:
        notes = attempt.run.get_layer("notes", NotesLayer)
        for number in range(400):
            notes.runtime_state.lines.append(f"{number:4} " + "x" * 95)
            await attempt.put_down()
        return Outcome.candidate(len(notes.runtime_state.lines))

    await LayeredWorker(compositor(), long).work(task)
    assert len(task.session.load()["layers"]["notes"]["state"]["lines"]) == 400
    assert sorted(written)[len(written) // 2] < 1_000, "most turns write little"
    assert sum(written) < 8 * 400 * 100


async def test_a_list_that_is_replaced_or_shorter_is_written_anew() -> None:
    async def windowed(attempt: LayeredAttempt) -> Outcome:
        state = attempt.run.get_layer("notes", NotesLayer).runtime_state
        state.lines += ["a", "b", "c"]
        await attempt.put_down()
        state.lines = Growing(state.lines[1:])
        await attempt.put_down()
        state.lines.pop()
        state.lines.append("d")
        state.lines = Growing([*state.lines, "e"])
        return Outcome.candidate(0)

    task = context()
    await LayeredWorker(compositor(), windowed).work(task)
    assert task.session.load()["layers"]["notes"]["state"]["lines"] == ["b", "d", "e"]


async def test_a_body_that_raises_is_put_down_and_its_error_is_what_is_told() -> None:
    async def breaks(attempt: LayeredAttempt) -> Outcome:
        attempt.run.get_layer("notes", NotesLayer).runtime_state.lines.append("said")
        raise LookupError("broke")

    task = context()
    with pytest.raises(LookupError, match="broke"):
        await LayeredWorker(compositor(), breaks).work(task)
    assert task.session.load()["layers"]["notes"] == {
        "type": "NotesLayer",
        "lifecycle": "suspended",
        "state": {"lines": ["said"], "entered": 1, "resumed": 0},
    }


async def test_what_is_cancelled_is_put_down_as_it_is_left() -> None:
    said = asyncio.Event()

    async def waits(attempt: LayeredAttempt) -> Outcome:
        state = attempt.run.get_layer("notes", NotesLayer).runtime_state
        state.lines.append("put down")
        await attempt.put_down()
        state.lines.append("of a turn that was cut")
        said.set()
        await asyncio.Event().wait()
        raise AssertionError

    task = context()
    working = asyncio.ensure_future(LayeredWorker(compositor(), waits).work(task))
    await said.wait()
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert task.session.load()["layers"]["notes"]["state"]["lines"] == ["put down", "of a turn that was cut"]
    assert NotesLayer.open == 0


async def test_a_layer_that_cannot_be_left_is_kept_as_it_was_valid_last() -> None:
    class Spoilt(PlainLayer[NoLayerDeps, LayerConfig, Notes]):
        async def on_context_suspend(self) -> None:
            self.runtime_state.lines = ["spoilt"]  # type: ignore[assignment]
            raise OSError("cannot be left")

    async def once(attempt: LayeredAttempt) -> Outcome:
        attempt.run.get_layer("notes", NotesLayer).runtime_state.lines.append("kept")
        return Outcome.candidate(0)

    layered = LayeredWorker(compositor(LayerNode("spoilt", Spoilt)), once)
    task = context()
    with pytest.raises(OSError, match="cannot be left"):
        await layered.work(task)
    layers = task.session.load()["layers"]
    assert layers["notes"]["state"]["lines"] == ["kept"]
    assert layers["spoilt"]["lifecycle"] == "suspended"
    with pytest.raises(OSError, match="cannot be left"):
        await layered.work(context(session=task.session.load()))


async def test_a_layer_that_is_deleted_is_created_anew_by_the_next_attempt() -> None:
    async def deletes(attempt: LayeredAttempt) -> Outcome:
        notes = attempt.run.get_layer("notes", NotesLayer)
        notes.runtime_state.lines.append("gone")
        attempt.run.delete_layer_on_exit("notes")
        return Outcome.candidate([notes.runtime_state.entered, notes.runtime_state.resumed])

    async def asks(attempt: LayeredAttempt) -> Outcome:
        attempt.run.get_layer("notes", NotesLayer).runtime_state.lines.append("new")
        return Outcome.candidate(0)

    layered = LayeredWorker(compositor(), deletes)
    task = context()
    first = await layered.work(task)
    assert task.session.load()["layers"]["notes"]["lifecycle"] == "closed"
    later = context(session=task.session.load())
    await LayeredWorker(compositor(), asks).work(later)
    assert later.session.load()["layers"]["notes"]["state"] == {"lines": ["new"], "entered": 1, "resumed": 0}
    again = await layered.work(context(session=task.session.load()))
    assert first.artifacts["result"].content == again.artifacts["result"].content == [1, 0]


async def test_a_session_of_other_layers_ends_the_task_and_says_what_differs(tmp_path: Path) -> None:
    async def first(attempt: LayeredAttempt) -> Outcome:
        await attempt.put_down()
        return Outcome.candidate(0)

    task = context()
    await LayeredWorker(compositor(), first).work(task)
    other = Compositor([LayerNode("say", NotesLayer), LayerNode("tools", PromptLayer)])
    with pytest.raises(Exception, match=r"notes is gone, tools is new, say is NotesLayer, was plain\.prompt"):
        await LayeredWorker(other, first).work(context(session=task.session.load()))
    with pytest.raises(Exception, match="not of layers as here"):
        await LayeredWorker(compositor(), first).work(context(session={"v": 9, "format": "dagbok.layers"}))
