"""An agent of Pydantic AI as the loop of a layered worker: its messages outlive the attempt that they are from."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from dagbok import Candidate, Outcome, TaskContext, TaskSpec, verifier
from dagbok.agents.layers import Compositor, LayerNode, PromptLayer
from dagbok.agents.layers.durable import LayeredAttempt, LayeredWorker, Loop
from dagbok.agents.layers.pydantic_ai import PYDANTIC_AI_TRANSFORMERS, PydanticAIHistoryLayer, keep_steps
from dagbok.events.run.events import AttemptFailed
from dagbok.testing import context
from tests.layers.cut_attempts import left_when_cut
from tests.support.hosts import events_of, hosted
from tests.support.session_store import Store

QUESTIONS = ["one", "two", "three", "four"]
CONFIGS = {"told": {"prefix": "be brief"}}


def compositor() -> Compositor:
    nodes = [LayerNode("told", PromptLayer), LayerNode("history", PydanticAIHistoryLayer)]
    return Compositor(nodes, **PYDANTIC_AI_TRANSFORMERS)


@verifier("any", version="1")
def anything(candidate: Candidate, task: TaskContext) -> bool:
    return True


def asked(messages: list[ModelMessage]) -> list[str]:
    parts = [part for message in messages for part in message.parts]
    return [str(part.content) for part in parts if isinstance(part, UserPromptPart)]


def counts(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Says what it was asked before, and what it is told."""
    return ModelResponse(parts=[TextPart(f"{info.instructions}: {asked(messages)[:-1]}")])


async def converses(attempt: LayeredAttempt) -> Outcome:
    """A question a turn; every attempt fails behind its second."""
    run, history = attempt.run, attempt.run.get_layer("history", PydanticAIHistoryLayer)
    agent, said = Agent(FunctionModel(counts), instructions=run.prompts), ""
    begun = len(asked(history.message_history))
    for question in QUESTIONS[begun:]:
        async with agent.iter(question, message_history=history.for_next_run()) as steps:
            said = (await keep_steps(steps, history, attempt.put_down)).output
        if len(asked(history.message_history)) == begun + 2 < len(QUESTIONS):
            raise ValueError("lost its thread")
    return Outcome.candidate({"said": said, "asked": asked(history.message_history)})


async def test_the_history_of_an_attempt_that_failed_is_that_of_the_next(tmp_path: Path) -> None:
    worker = LayeredWorker(compositor(), converses, configs=CONFIGS).worker("converses")
    async with hosted(tmp_path, worker, anything) as dagbok:
        result = await dagbok.run(TaskSpec(id="talk", goal="talk", worker="converses", verifier="any", max_attempts=5))
        failed = await events_of(dagbok, AttemptFailed)
        session = (await dagbok.session(result.run, "talk")).value
    assert len(failed) == 1
    assert result.json() == {"said": "be brief: ['one', 'two', 'three']", "asked": QUESTIONS}
    assert len(session["layers"]["history"]["state"]["messages"]) == 2 * len(QUESTIONS)


async def test_an_attempt_that_is_killed_in_a_tool_leaves_its_call_to_be_closed() -> None:
    """The call is in the log before the tool runs: the next attempt knows of it, and its message works."""
    running = asyncio.Event()

    async def look() -> str:
        running.set()
        await asyncio.Event().wait()
        raise AssertionError

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) == 1:
            return ModelResponse(parts=[ToolCallPart("look", {}, tool_call_id="c1")])
        parts = [part for message in messages for part in message.parts]
        found = [part.outcome for part in parts if isinstance(part, ToolReturnPart)]
        return ModelResponse(parts=[TextPart(f"my call was {found}")])

    async def loop(attempt: LayeredAttempt) -> Outcome:
        history = attempt.run.get_layer("history", PydanticAIHistoryLayer)
        agent = Agent(FunctionModel(model), tools=[look])
        async with agent.iter("look around", message_history=history.for_next_run()) as steps:
            return Outcome.candidate((await keep_steps(steps, history, attempt.put_down)).output)

    worker, task = LayeredWorker(compositor(), loop, configs=CONFIGS), context()
    left = await left_when_cut(worker, task, running)
    assert [message["kind"] for message in left["layers"]["history"]["state"]["messages"]] == ["request", "response"]
    later = context(session=left)
    outcome = await worker.work(later)
    assert outcome.artifacts["result"].content == "my call was ['interrupted']"
    messages = later.session.load()["layers"]["history"]["state"]["messages"]
    assert [part["part_kind"] for message in messages for part in message["parts"]] == [
        *("user-prompt", "tool-call", "tool-return"),
        *("user-prompt", "text"),
    ]


async def test_a_turn_costs_what_is_new() -> None:
    task, written = context(), list[int]()
    real = task.session._put_down

    async def counted(turn: int, keep: int, part: bytes) -> None:
        written.append(len(part))
        await real(turn, keep, part)

    task.session._put_down = counted

    async def long(attempt: LayeredAttempt) -> Outcome:
        history = attempt.run.get_layer("history", PydanticAIHistoryLayer)
        agent = Agent(TestModel(custom_output_text="yes"))
        for number in range(60):
            async with agent.iter(f"{number}", message_history=history.for_next_run()) as steps:
                await keep_steps(steps, history)
            await attempt.put_down()
        return Outcome.candidate(len(history.message_history))

    await LayeredWorker(compositor(), long, configs={**CONFIGS, "history": {"max_messages": 6}}).work(task)
    assert len(task.session.load()["layers"]["history"]["state"]["messages"]) == 120
    assert sorted(written)[len(written) // 2] < 4_000, "most turns write two messages"


async def attempt(store: Store, loop: Loop, **config: int) -> None:
    task = context()
    task.open_session = store.session
    await LayeredWorker(compositor(), loop, configs={**CONFIGS, "history": config}).work(task)


async def test_defect_21_two_messages_behind_five_thousand_cost_two() -> None:
    """Neither going on nor a window validates what is old; who looks at all of it has all of it."""
    store, unread = Store(), list[int]()
    said: list[ModelMessage] = [ModelRequest(parts=[SystemPromptPart("be brief"), UserPromptPart("count")])]
    for number in range(2_500):
        said += [ModelResponse(parts=[TextPart(f"{number}")]), ModelRequest(parts=[UserPromptPart("next")])]

    async def talks(attempt: LayeredAttempt) -> Outcome:
        history = attempt.run.get_layer("history", PydanticAIHistoryLayer)
        for start in range(0, len(said), 1_000):
            history.append_messages(said[start : start + 1_000])
            await attempt.put_down()
        return Outcome.candidate(0)

    async def goes_on(attempt: LayeredAttempt) -> Outcome:
        history = attempt.run.get_layer("history", PydanticAIHistoryLayer)
        if attempt.task.goal == "look":
            sent.extend(history.for_next_run())
        history.append_messages([ModelResponse(parts=[TextPart("a")]), ModelRequest(parts=[UserPromptPart("b")])])
        await attempt.put_down()
        unread.append(history.runtime_state.messages.unread)
        return Outcome.candidate(0)

    sent: list[ModelMessage] = []
    await attempt(store, talks)
    written = store.written
    await attempt(store, goes_on)
    assert store.written - written < 2_000
    assert unread == [5_001]
    task = context(goal="look")
    task.open_session = store.session
    await LayeredWorker(compositor(), goes_on, configs={**CONFIGS, "history": {"max_messages": 20}}).work(task)
    assert unread[1] >= 5_003 - 25
    assert [getattr(part, "content", None) for part in sent[0].parts] == ["be brief", "count"]
    assert len(sent) in (20, 21)
