"""What of a long history is sent: within bounds, without half a tool call, with all that the agent is told."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
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
from pydantic_ai.models.test import TestModel

from dagbok.agents.layers import Compositor, LayerNode
from dagbok.agents.layers.pydantic_ai import PydanticAIHistoryLayer
from dagbok.agents.layers.pydantic_ai.window import Bounds, size_bytes, windowed


def asked(text: str) -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(text)])


def answered(text: str) -> ModelResponse:
    return ModelResponse(parts=[TextPart(text)])


def called(*ids: str) -> list[ModelMessage]:
    return [
        ModelResponse(parts=[ToolCallPart("look", {}, tool_call_id=each) for each in ids]),
        ModelRequest(parts=[ToolReturnPart("look", "seen", tool_call_id=each) for each in ids]),
    ]


TOLD = ModelRequest(parts=[SystemPromptPart("be brief"), UserPromptPart("the task")])
CHAT: list[ModelMessage] = [TOLD, answered("0"), asked("1"), answered("1"), asked("2"), answered("2")]


def one(message: ModelMessage) -> int:
    return 1


def texts(messages: list[ModelMessage]) -> list[str]:
    return [str(getattr(part, "content", part)) for message in messages for part in message.parts]


def test_without_bounds_all_is_sent() -> None:
    assert windowed(CHAT, Bounds(), one) == CHAT


def test_the_last_messages_stand_behind_the_system_prompt_and_the_first_prompt() -> None:
    assert texts(windowed(CHAT, Bounds(max_messages=2), one)) == ["be brief", "the task", "2", "2"]
    assert texts(windowed(CHAT, Bounds(max_messages=5), one)) == ["be brief", "the task", "0", "1", "1", "2", "2"]
    assert windowed(CHAT, Bounds(max_messages=6), one) == CHAT


def test_the_first_prompt_may_be_cut_the_system_prompt_never() -> None:
    found = windowed(CHAT, Bounds(max_messages=3, keep_first_prompt=False), one)
    assert texts(found) == ["be brief", "2", "2"], "a conversation begins with its user"


def test_a_system_prompt_from_the_middle_is_kept_too() -> None:
    later = ModelRequest(parts=[SystemPromptPart("in French"), UserPromptPart("1")])
    messages: list[ModelMessage] = [TOLD, answered("0"), later, answered("1"), asked("2"), answered("2")]
    found = windowed(messages, Bounds(max_messages=2), one)
    assert texts(found) == ["be brief", "in French", "the task", "2", "2"]


def test_a_call_and_its_return_stay_together() -> None:
    messages: list[ModelMessage] = [TOLD, *called("a"), *called("b", "c"), answered("done")]
    assert windowed(messages, Bounds(max_messages=3), one)[1:] == messages[3:]
    assert windowed(messages, Bounds(max_messages=2), one)[1:] == messages[5:]
    assert windowed(messages, Bounds(max_messages=4), one)[1:] == messages[3:]


def test_returns_that_came_one_by_one_stay_with_their_call() -> None:
    response, both = called("a", "b")
    returns = [part for part in both.parts if isinstance(part, ToolReturnPart)]
    messages: list[ModelMessage] = [TOLD, answered("0"), response, *(ModelRequest(parts=[part]) for part in returns)]
    assert windowed(messages, Bounds(max_messages=1), one)[1:] == messages[2:]
    assert windowed(messages, Bounds(max_messages=2), one)[1:] == messages[2:]


def test_the_newest_exchange_is_sent_although_it_is_too_large() -> None:
    found = windowed([*CHAT, *called("a")], Bounds(max_tokens=1), one)
    assert texts(found)[:2] == ["be brief", "the task"]
    assert found[1:] == found[-2:]


def test_tokens_are_counted_with_what_is_never_cut() -> None:
    assert texts(windowed(CHAT, Bounds(max_tokens=3), one)) == ["be brief", "the task", "2", "2"]
    assert windowed(CHAT, Bounds(max_tokens=6), one) == CHAT


def test_bytes_are_a_bound_on_all_that_is_sent() -> None:
    long: list[ModelMessage] = [TOLD]
    for number in range(50):
        long += [answered("x" * 100), asked(str(number))]
    found = windowed(long, Bounds(max_bytes=4_000), one)
    assert 3_000 < sum(map(size_bytes, found)) <= 4_000
    assert found[-1] == long[-1]


def exchange(kind: str, name: str) -> list[ModelMessage]:
    if kind == "user":
        return [asked(name)]
    if kind == "text":
        return [answered(name)]
    return called(name) if kind == "call" else called(f"{name}a", f"{name}b")


def test_a_window_never_begins_with_what_nobody_asked_for() -> None:
    told = ModelRequest(parts=[SystemPromptPart("be brief")])
    messages: list[ModelMessage] = [told, answered("welcome"), answered("how can I help?"), asked("1"), answered("1")]
    assert texts(windowed(messages, Bounds(max_messages=3), one)) == ["be brief", "1", "1"]


@given(st.lists(st.sampled_from(["user", "text", "call", "calls"]), max_size=12), st.integers(1, 8), st.booleans())
def test_no_window_tears_a_call_or_loses_what_the_agent_is_told(kinds: list[str], bound: int, first: bool) -> None:
    messages: list[ModelMessage] = [TOLD]
    for number, kind in enumerate(kinds):
        messages += exchange(kind, str(number))
    found = windowed(messages, Bounds(max_messages=bound, keep_first_prompt=first), one)
    parts = [part for message in found for part in message.parts]
    made_calls = [part.tool_call_id for part in parts if isinstance(part, ToolCallPart)]
    answers = [part.tool_call_id for part in parts if isinstance(part, ToolReturnPart)]
    assert made_calls == answers
    assert texts(found)[0] == "be brief"
    assert isinstance(found[0], ModelRequest)
    assert found[-1] == messages[-1] or len(messages) == 1


async def test_the_config_of_the_layer_bounds_what_an_agent_gets_and_not_what_is_kept() -> None:
    plan = Compositor([LayerNode("history", PydanticAIHistoryLayer)])
    agent, seen = Agent(TestModel(custom_output_text="ok"), system_prompt="be brief"), []
    async with plan.enter(configs={"history": {"max_messages": 2}}) as run:
        history = run.get_layer("history", PydanticAIHistoryLayer)
        for number in range(4):
            result = await agent.run(f"prompt {number}", message_history=history.for_next_run())
            history.append_messages(result.new_messages())
            seen.append(texts(result.all_messages()))
        assert seen[-1] == ["be brief", "prompt 0", "prompt 2", "ok", "prompt 3", "ok"]
        assert len(history.message_history) == 8
