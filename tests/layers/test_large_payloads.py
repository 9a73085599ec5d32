"""F24, the agent: many steps of a megabyte each, and neither the log nor a step carries them all."""

from __future__ import annotations

from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from dagbok import Limits, Outcome, TaskSpec
from dagbok.agents.layers import Compositor, LayerNode
from dagbok.agents.layers.durable import LayeredAttempt, LayeredWorker
from dagbok.agents.layers.pydantic_ai import PydanticAIHistoryLayer, keep_steps
from dagbok.events.log.port import EVENTS
from dagbok.events.run.events import AttemptFailed, SessionSuspended, TaskFailed
from tests.support.hosts import events_of, hosted
from tests.support.scale import scale

MEGABYTE = 1_000_000
STEPS = scale(10, 50)
WINDOW = 3 * MEGABYTE


class Agency:
    """An agent whose tool returns a megabyte in each step, and what its model was sent."""

    def __init__(self) -> None:
        self.sent: list[int] = []

    def worker(self) -> LayeredWorker:
        nodes = [LayerNode("history", PydanticAIHistoryLayer)]
        return LayeredWorker(Compositor(nodes), self._loop, configs={"history": {"max_bytes": WINDOW}})

    def _model(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        returned = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
        self.sent.append(sum(len(str(part.content)) for part in returned))
        if isinstance(messages[-1].parts[-1], ToolReturnPart):
            return ModelResponse(parts=[TextPart("seen")])
        return ModelResponse(parts=[ToolCallPart("look", {}, tool_call_id=f"c{len(self.sent)}")])

    async def _loop(self, attempt: LayeredAttempt) -> Outcome:
        history = attempt.run.get_layer("history", PydanticAIHistoryLayer)
        step = 0

        def look() -> str:
            return f"{step:4}" * (MEGABYTE // 4)

        agent = Agent(FunctionModel(self._model), tools=[look])
        for step in range(len(history.runtime_state.messages) // 4, STEPS):
            async with agent.iter(f"step {step}", message_history=history.for_next_run()) as steps:
                await keep_steps(steps, history)
            await attempt.put_down()
            if attempt.task.attempt == 1 and step == STEPS // 2:
                raise ConnectionError("the endpoint is gone")
        return Outcome.candidate(len(history.message_history))


def task(**more: object) -> TaskSpec:
    return TaskSpec.model_validate({"id": "t", "goal": "look", "worker": "looks", "verifier": "yes", **more})


async def test_f24_an_agent_of_many_large_steps_writes_references_and_no_step_carries_all(tmp_path: Path) -> None:
    agency = Agency()
    async with hosted(tmp_path, agency.worker().worker("looks")) as dagbok:
        result = await dagbok.run(task(max_attempts=2), limits=Limits(max_total_artifact_bytes=1_000 * MEGABYTE))
        assert result.json() == 4 * STEPS
        put_down = [event.part.size_bytes for event in await events_of(dagbok, SessionSuspended)]
        end = (await dagbok.host.log.bounds(EVENTS, 0)).end
        records = await dagbok.host.log.read(EVENTS, 0, 0, end)
        session = (await dagbok.session(result.run, "t")).value
    assert max(len(record.value) for record in records) < 20_000
    assert max(agency.sent) <= WINDOW + MEGABYTE, "the window, and the newest exchange whatever its size"
    assert sorted(put_down)[len(put_down) // 2] < 2.1 * MEGABYTE, "most turns write what is new"
    assert sum(put_down) < STEPS * MEGABYTE * STEPS.bit_length()
    returns = [part for message in session["layers"]["history"]["state"]["messages"] for part in message["parts"]]
    seen = [part["content"][:4] for part in returns if part["part_kind"] == "tool-return"]
    assert seen == [f"{step:4}" for step in range(STEPS)], "none is lost with the attempt that failed"


async def test_f24_a_limit_that_an_agent_hits_ends_its_task_and_says_so(tmp_path: Path) -> None:
    async with hosted(tmp_path, Agency().worker().worker("looks")) as dagbok:
        result = await dagbok.run(task(max_attempts=3), limits=Limits(max_total_artifact_bytes=4 * MEGABYTE))
        failed = await events_of(dagbok, AttemptFailed)
        assert len(await events_of(dagbok, TaskFailed)) == 1
    assert (result.status, result.failed) == ("failed", {"t": "worker_failed"})
    assert len(failed) == 1, "another attempt would hit it too"
    assert "max_total_artifact_bytes" in failed[0].failure.message
