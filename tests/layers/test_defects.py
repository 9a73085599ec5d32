"""Defects of layers and of the service around them that must not be repeated, with runs of dagbok as the service; the
others stand beside what they are about (`docs/conformance.md` names them all)."""

from __future__ import annotations

import asyncio
import random
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from dagbok import Dagbok, Outcome, Refused, TaskSpec
from dagbok.agents.layers import Compositor, Growing, LayerConfig, LayerNode, LifecycleState, NoLayerDeps, PlainLayer
from dagbok.agents.layers.durable import LayeredAttempt, LayeredWorker, Loop
from dagbok.agents.layers.pydantic_ai import PydanticAIHistoryLayer, keep_steps
from tests.support.hosts import TIMEOUT_S, hosted, yes
from tests.support.scale import scale

TERMINAL = {"RunSucceeded", "RunFailed", "RunCancelled"}


class Lines(BaseModel):
    lines: Growing[str] = Field(default_factory=Growing)


class Notes(PlainLayer[NoLayerDeps, LayerConfig, Lines]):
    config_type = LayerConfig


def layered(loop: Loop, layer: type[Any] = Notes) -> LayeredWorker:
    return LayeredWorker(Compositor([LayerNode("notes", layer)]), loop)


def one(worker: str = "works", **more: Any) -> TaskSpec:
    return TaskSpec.model_validate(
        {"id": "t", "goal": "do it", "worker": worker, "verifier": "yes", "max_attempts": 1, **more}
    )


async def lines_of(dagbok: Dagbok, run: str) -> list[str]:
    value = (await dagbok.session(run, "t")).value
    return list(value["layers"]["notes"]["state"]["lines"])


async def test_defect_11_after_a_stop_in_a_tool_call_the_next_message_works(tmp_path: Path) -> None:
    """The run is cancelled while its tool runs; a new task goes on with its session."""
    running = asyncio.Event()

    async def look() -> str:
        running.set()
        await asyncio.Event().wait()
        raise AssertionError

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        parts = [part for message in messages for part in message.parts]
        if isinstance(parts[-1], UserPromptPart) and parts[-1].content == "look":
            return ModelResponse(parts=[ToolCallPart("look", {}, tool_call_id="c")])
        return ModelResponse(parts=[TextPart(str([p.outcome for p in parts if isinstance(p, ToolReturnPart)]))])

    async def loop(attempt: LayeredAttempt) -> Outcome:
        history = attempt.run.get_layer("notes", PydanticAIHistoryLayer)
        agent = Agent(FunctionModel(model), tools=[look])
        async with agent.iter(str(attempt.task.inputs), message_history=history.for_next_run()) as steps:
            return Outcome.candidate((await keep_steps(steps, history, attempt.put_down)).output)

    async with hosted(tmp_path, layered(loop, PydanticAIHistoryLayer).worker("works")) as dagbok:
        run = await dagbok.start(one(inputs="look"))
        await running.wait()
        await dagbok.cancel(run)
        assert (await dagbok.wait(run)).status == "cancelled"
        forked = await dagbok.fork(run, "t")
        assert (await dagbok.run(one(inputs="and now?", session=forked))).json() == "['interrupted']"


@pytest.mark.parametrize("how", ["failed", "cancelled"])
async def test_defect_12_a_run_that_failed_or_was_cancelled_keeps_the_session_of_its_last_turn(
    how: Literal["failed", "cancelled"], tmp_path: Path
) -> None:
    turned = asyncio.Event()

    async def loop(attempt: LayeredAttempt) -> Outcome:
        lines = attempt.run.get_layer("notes", Notes).runtime_state.lines
        lines.append(f"turn {len(lines) + 1}")
        await attempt.put_down()
        turned.set()
        if attempt.task.inputs == "failed":
            raise ValueError("lost its thread")
        if attempt.task.inputs == "cancelled":
            await asyncio.Event().wait()
        return Outcome.candidate(list(lines))

    async with hosted(tmp_path, layered(loop).worker("works")) as dagbok:
        run = await dagbok.start(one(inputs=how))
        await turned.wait()
        if how == "cancelled":
            await dagbok.cancel(run)
        assert (await dagbok.wait(run)).status == how
        assert await lines_of(dagbok, run) == ["turn 1"]
    async with hosted(tmp_path, layered(loop).worker("works")) as dagbok:
        forked = await dagbok.fork(run, "t")
        assert (await dagbok.run(one(session=forked))).json() == ["turn 1", "turn 2"]
        assert await lines_of(dagbok, run) == ["turn 1"]


async def test_defect_13_a_race_of_cancel_and_success_has_one_end_the_last_event_and_the_status(tmp_path: Path) -> None:
    """A thousand runs in full scale; each is cancelled when one of its events is in the log, which may be its last."""

    async def loop(attempt: LayeredAttempt) -> Outcome:
        await attempt.put_down()
        return Outcome.candidate(0)

    statuses: set[str] = set()
    spread = random.Random(13)

    async def raced(dagbok: Dagbok) -> None:
        run = await dagbok.start(one())
        at, events, cancelling = spread.randrange(1, 12), list[str](), None
        async for event in dagbok.events(run):
            events.append(event.type)
            if event.seq == at:
                cancelling = asyncio.ensure_future(_cancel(dagbok, run))
        status = (await dagbok.result(run)).status
        if cancelling is not None:
            await cancelling
        end = {"succeeded": "RunSucceeded", "cancelled": "RunCancelled"}[status]
        later = [event.type async for event in dagbok.events(run)]
        for seen in (events, later):
            assert [each for each in seen if each in TERMINAL] == [end]
            assert set(seen[seen.index(end) + 1 :]) <= {"CommandRefused"}, "behind it: what came too late"
        assert (await dagbok.result(run)).status == status
        statuses.add(status)

    async with asyncio.timeout(10 * TIMEOUT_S), hosted_for_long(tmp_path, layered(loop)) as dagbok:
        for _ in range(scale(20, 100)):
            await asyncio.gather(*(raced(dagbok) for _ in range(10)))
    assert statuses == {"succeeded", "cancelled"}, "both happened"


async def _cancel(dagbok: Dagbok, run: str) -> None:
    with suppress(Refused):  # it is over
        await dagbok.cancel(run)


def hosted_for_long(folder: Path, worker: LayeredWorker) -> AbstractAsyncContextManager[Dagbok]:
    return Dagbok.embedded(folder, yes, worker.worker("works"), projector="none")


async def test_defect_14_a_run_is_cancelled_through_a_process_that_does_not_decide(tmp_path: Path) -> None:
    began, stopped = asyncio.Event(), asyncio.Event()

    async def loop(attempt: LayeredAttempt) -> Outcome:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        raise AssertionError

    async with (
        hosted(tmp_path, layered(loop).worker("works")) as owner,
        Dagbok.embedded(tmp_path, own="never", serve=False, projector="none") as other,
    ):
        run = await owner.start(one())
        await began.wait()
        await other.cancel(run)
        await stopped.wait()
        assert (await owner.wait(run)).status == (await other.wait(run)).status == "cancelled"


async def test_defect_19_a_layered_worker_suspends_by_default(tmp_path: Path) -> None:
    async def loop(attempt: LayeredAttempt) -> Outcome:
        return Outcome.candidate(0)

    async with hosted(tmp_path, layered(loop).worker("works")) as dagbok:
        run = (await dagbok.run(one())).run
        layers = (await dagbok.session(run, "t")).value["layers"]
    assert {layer["lifecycle"] for layer in layers.values()} == {LifecycleState.SUSPENDED}
