"""The history of an agent as a layer: what it gives back, and how it passes from run to run."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from dagbok import Outcome
from dagbok.agents.layers import Compositor, CompositorSessionSnapshot, LayerNode
from dagbok.agents.layers.durable import LayeredAttempt, LayeredWorker
from dagbok.agents.layers.pydantic_ai import PYDANTIC_AI_HISTORY_LAYER_TYPE_ID, PydanticAIHistoryLayer, keep_steps
from dagbok.testing import context

WHEN = datetime(2026, 1, 2, tzinfo=UTC)
PAGE = bytes([0x89, 0xFF, 0xFE, 0x00])
MESSAGES: list[ModelMessage] = [
    ModelRequest(parts=[SystemPromptPart("be brief", timestamp=WHEN), UserPromptPart("hello", timestamp=WHEN)]),
    ModelResponse(parts=[ThinkingPart("hm"), ToolCallPart("look", {"at": 1}, tool_call_id="c1")], timestamp=WHEN),
    ModelRequest(parts=[ToolReturnPart("look", {"seen": [1]}, tool_call_id="c1", timestamp=WHEN)]),
    ModelRequest(parts=[UserPromptPart(["what?", BinaryContent(PAGE, media_type="application/pdf")], timestamp=WHEN)]),
    ModelResponse(parts=[TextPart("a page")], timestamp=WHEN),
]


def compositor() -> Compositor:
    return Compositor([LayerNode("history", PydanticAIHistoryLayer)])


def layer() -> PydanticAIHistoryLayer:
    return compositor().nodes[0].provider.create_layer()  # type: ignore[no-any-return]


def test_its_type_id_is_a_constant() -> None:
    assert PydanticAIHistoryLayer.type_id == PYDANTIC_AI_HISTORY_LAYER_TYPE_ID == "pydantic_ai.history"


async def test_it_starts_empty_and_gives_nothing() -> None:
    async with compositor().enter() as run:
        history = run.get_layer("history", PydanticAIHistoryLayer)
        assert history.message_history == history.for_next_run() == []
        assert (run.prompts, run.user_prompts, run.tools) == ([], [], [])


def test_replacing_copies() -> None:
    history, given = layer(), MESSAGES[:2]
    history.replace_messages(given)
    given.append(MESSAGES[2])
    assert history.message_history == MESSAGES[:2]
    history.message_history.clear()
    assert history.message_history == MESSAGES[:2]


def test_appending_keeps_the_order_and_aliases_nothing() -> None:
    history = layer()
    first, second = MESSAGES[:2], MESSAGES[2:]
    history.append_messages(first)
    history.append_messages(second)
    assert history.message_history == MESSAGES
    given = history.message_history
    given[0].parts = []
    first[1].parts = first[1].parts[:]
    first.clear()
    assert history.message_history == MESSAGES


def test_clearing_forgets_all() -> None:
    history = layer()
    history.append_messages(MESSAGES)
    history.clear()
    assert history.message_history == []


def test_only_messages_are_taken() -> None:
    history = layer()
    with pytest.raises(TypeError, match="messages of Pydantic AI, not str"):
        history.append_messages(["hello"])  # type: ignore[list-item]
    assert history.message_history == []


def test_its_state_keeps_the_classes_of_messages_as_json() -> None:
    history = layer()
    history.append_messages(MESSAGES)
    state = history.runtime_state
    read = type(state).model_validate_json(state.model_dump_json())
    assert read.messages == MESSAGES
    assert [type(message) for message in read.messages] == [type(message) for message in MESSAGES]


async def test_a_snapshot_keeps_the_classes_of_messages() -> None:
    plan = compositor()
    async with plan.enter() as run:
        run.suspend_on_exit()
        run.get_layer("history", PydanticAIHistoryLayer).append_messages(MESSAGES)
    assert run.session_snapshot is not None
    text = run.session_snapshot.model_dump_json()
    async with plan.enter(session_snapshot=CompositorSessionSnapshot.model_validate_json(text)) as again:
        assert again.get_layer("history", PydanticAIHistoryLayer).message_history == MESSAGES


async def test_a_session_of_a_task_keeps_bytes() -> None:
    async def first(attempt: LayeredAttempt) -> Outcome:
        history = attempt.run.get_layer("history", PydanticAIHistoryLayer)
        history.append_messages(MESSAGES[:2])
        await attempt.put_down()
        history.append_messages(MESSAGES[2:])
        return Outcome.candidate(0)

    async def second(attempt: LayeredAttempt) -> Outcome:
        assert attempt.run.get_layer("history", PydanticAIHistoryLayer).message_history == MESSAGES
        return Outcome.candidate(1)

    task = context()
    await LayeredWorker(compositor(), first).work(task)
    written = task.session.load()["layers"]["history"]["state"]["messages"]
    assert base64.urlsafe_b64decode(written[3]["parts"][0]["content"][1]["data"]) == PAGE
    await LayeredWorker(compositor(), second).work(context(session=task.session.load()))


async def test_bytes_that_a_tool_returned_are_put_down() -> None:
    async def loop(attempt: LayeredAttempt) -> Outcome:
        returned = ModelRequest(parts=[ToolReturnPart("look", {"raw": PAGE}, tool_call_id="c1")])
        attempt.run.get_layer("history", PydanticAIHistoryLayer).append_messages([MESSAGES[1], returned])
        await attempt.put_down()
        return Outcome.candidate(0)

    task = context()
    await LayeredWorker(compositor(), loop).work(task)
    written = task.session.load()["layers"]["history"]["state"]["messages"]
    assert base64.urlsafe_b64decode(written[1]["parts"][0]["content"]["raw"]) == PAGE


async def test_an_agent_goes_on_with_it() -> None:
    history, agent = layer(), Agent(TestModel(custom_output_text="yes"))
    for prompt in ("one", "two"):
        history.append_messages((await agent.run(prompt, message_history=history.for_next_run())).new_messages())
    said = [part.content for message in history.message_history for part in message.parts if hasattr(part, "content")]
    assert said == ["one", "yes", "two", "yes"]


async def test_the_prompts_of_a_run_are_not_kept_and_the_next_run_has_its_own() -> None:
    told: list[str | None] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        told.append(info.instructions)
        return ModelResponse(parts=[TextPart("yes")])

    history = layer()
    for prompt in ("be brief", "be kind"):
        agent = Agent(FunctionModel(model), instructions=prompt)
        history.append_messages((await agent.run("hello", message_history=history.for_next_run())).new_messages())
    assert told == ["be brief", "be kind"]
    assert "be " not in history.runtime_state.model_dump_json()


async def test_a_run_that_goes_on_behind_the_return_of_a_tool_has_its_prompts_too() -> None:
    told: list[str | None] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        told.append(info.instructions)
        return ModelResponse(parts=[TextPart("yes")])

    history = layer()
    history.append_messages(MESSAGES[:3])
    agent = Agent(FunctionModel(model), instructions="be kind")
    await agent.run(message_history=history.for_next_run())
    assert told == ["be kind"]


async def test_only_new_messages_are_appended() -> None:
    history, agent = layer(), Agent(TestModel(custom_output_text="yes"), instructions="be brief")
    for turns in (1, 2, 3):
        async with agent.iter("more", message_history=history.for_next_run()) as steps:
            await keep_steps(steps, history)
        assert len(history.message_history) == 2 * turns
