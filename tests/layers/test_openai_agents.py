"""Agents of the OpenAI Agents SDK from layers, beside Pydantic AI in one process; offline."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import FunctionTool, RunConfig, Runner, Session, UserError  # noqa: TID251 - the SDK is called so
from pydantic_ai import Agent as PydanticAIAgent
from pydantic_ai import Tool
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from dagbok import Candidate, Outcome, TaskContext, TaskSpec, verifier
from dagbok.agents.layers import (
    Compositor,
    LayerNode,
    LayerProvider,
    PromptLayer,
    PydanticAIToolType,
    ToolsLayer,
    described_tool,
)
from dagbok.agents.layers.durable import LayeredAttempt, LayeredWorker
from dagbok.agents.layers.interrupted import INTERRUPTED
from dagbok.agents.layers.openai_agents import (
    OPENAI_AGENTS_TRANSFORMERS,
    OpenAIAgentsSessionConfig,
    OpenAIAgentsSessionLayer,
    agent_of,
    input_of,
)
from dagbok.agents.layers.openai_agents.items import closed, turn_start
from dagbok.agents.layers.pydantic_ai import PYDANTIC_AI_TRANSFORMERS
from dagbok.events.run.events import AttemptFailed
from dagbok.testing import context
from tests.layers.cut_attempts import left_when_cut
from tests.support.hosts import events_of, hosted
from tests.support.openai_agents_model import AnsweringModel, Asked, Call

OFFLINE = RunConfig(tracing_disabled=True)


def add(a: int, b: int = 1) -> int:
    """Add two numbers.

    Args:
        a: The first.
        b: The second.
    """
    return a + b


def tools_layer(*functions: Any) -> LayerProvider[ToolsLayer]:
    return LayerProvider.from_factory(layer_type=ToolsLayer, create=lambda config: ToolsLayer(functions))


def plan(*functions: Any, **transformers: Any) -> Compositor[Any, Any, Any]:
    nodes = [
        LayerNode("told", PromptLayer),
        LayerNode("tools", tools_layer(*functions)),
        LayerNode("history", OpenAIAgentsSessionLayer),
    ]
    return Compositor(nodes, **(transformers or OPENAI_AGENTS_TRANSFORMERS))


CONFIGS = {"told": {"prefix": "be brief", "user": "2 and 5?", "suffix": "be kind"}}


def adds(asked: Asked) -> str | Call:
    if not asked.returned:
        return Call("add", {"a": 2, "b": 5})
    return f"{asked.instructions!r}: {asked.said[-1]} {asked.returned[-1]}"


async def test_an_agent_has_the_prompts_and_tools_of_a_run() -> None:
    async with plan(add).enter(configs=CONFIGS) as run:
        agent = agent_of(run, model=AnsweringModel(adds))
        result = await Runner.run(agent, input_of(run), run_config=OFFLINE)
    assert result.final_output == "'be brief\\n\\nbe kind': 2 and 5? 7"
    (tool,) = agent.tools
    assert isinstance(tool, FunctionTool)
    assert (tool.name, tool.description) == ("add", "Add two numbers.")
    assert tool.params_json_schema["properties"]["b"]["description"] == "The second."


async def test_beside_an_agent_of_pydantic_ai_of_the_same_layers() -> None:
    """Both libraries in one process and one event loop, from one plan but for the transformers."""

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        returned = [str(part.content) for each in messages for part in each.parts if part.part_kind == "tool-return"]
        return ModelResponse(parts=[TextPart(returned[0]) if returned else ToolCallPart("add", {"a": 2, "b": 5})])

    async def openai() -> str:
        async with plan(add).enter(configs=CONFIGS) as run:
            agent = agent_of(run, model=AnsweringModel(adds))
            return str((await Runner.run(agent, input_of(run), run_config=OFFLINE)).final_output)

    async def pydantic() -> str:
        async with plan(add, **PYDANTIC_AI_TRANSFORMERS).enter(configs=CONFIGS) as run:
            agent = PydanticAIAgent(FunctionModel(model), tools=run.tools)
            return (await agent.run(run.user_prompts)).output

    found = await asyncio.gather(openai(), pydantic())
    assert [said[-1] for said in found] == ["7", "7"]


async def test_a_described_tool_keeps_its_schema_and_is_called_with_what_the_model_gives() -> None:
    city: dict[str, Any] = {"type": "string"}
    schema: dict[str, Any] = {"type": "object", "properties": {"from-city": city}, "required": ["from-city"]}

    async def shown(arguments: dict[str, Any]) -> str:
        return f"from {arguments['from-city']}"

    tool = described_tool(shown, name="travel", description="Where to.", parameters=schema)

    def model(asked: Asked) -> str | Call:
        given = asked.tools[0]
        assert isinstance(given, FunctionTool)
        assert given.params_json_schema == schema
        return asked.returned[0] if asked.returned else Call("travel", {"from-city": "Bergen"})

    async with plan(tool).enter() as run:
        result = await Runner.run(agent_of(run, model=AnsweringModel(model)), "go", run_config=OFFLINE)
    assert result.final_output == "from Bergen"


async def test_arguments_that_do_not_fit_are_told_to_the_model() -> None:
    def model(asked: Asked) -> str | Call:
        return asked.returned[0] if asked.returned else Call("add", {"a": "many"})

    async with plan(add).enter() as run:
        result = await Runner.run(agent_of(run, model=AnsweringModel(model)), "go", run_config=OFFLINE)
    assert result.final_output.startswith("The arguments do not fit: ")


async def test_what_a_tool_raises_ends_the_run() -> None:
    def breaks() -> str:
        raise ConnectionError("the server is gone")

    async with plan(breaks).enter() as run:
        agent = agent_of(run, model=AnsweringModel(lambda asked: Call("breaks", {})))
        with pytest.raises((ConnectionError, UserError), match="the server is gone"):
            await Runner.run(agent, "go", run_config=OFFLINE)


async def test_a_tool_without_a_strict_schema_is_taken() -> None:
    def count(words: dict[str, int]) -> int:
        return sum(words.values())

    def model(asked: Asked) -> str | Call:
        return asked.returned[0] if asked.returned else Call("count", {"words": {"a": 1, "b": 2}})

    async with plan(count).enter() as run:
        result = await Runner.run(agent_of(run, model=AnsweringModel(model)), "go", run_config=OFFLINE)
    assert result.final_output == "3"


async def test_what_cannot_be_given_is_refused() -> None:
    async with plan(add, add).enter() as run:
        with pytest.raises(ValueError, match="'add' is given 2 times"):
            agent_of(run, model="none")
    to_tools = OPENAI_AGENTS_TRANSFORMERS["tool_transformer"]
    assert to_tools is not None
    with pytest.raises(NotImplementedError, match="takes no pydantic_ai items"):
        to_tools([PydanticAIToolType(Tool(add))])


QUESTIONS = ["one", "two", "three", "four"]


@verifier("any", version="1")
def anything(candidate: Candidate, task: TaskContext) -> bool:
    return True


async def converses(attempt: LayeredAttempt) -> Outcome:
    """A question a turn; an attempt fails behind its second."""
    history = attempt.run.get_layer("history", OpenAIAgentsSessionLayer)
    session = history.session(attempt.put_down)
    agent = agent_of(attempt.run, model=AnsweringModel(lambda asked: f"before: {asked.said[:-1]}"))
    begun = len([item for item in history.runtime_state.items if item.get("role") == "user"])
    said = ""
    for number, question in enumerate(QUESTIONS[begun:], 1):
        said = (await Runner.run(agent, question, session=session, run_config=OFFLINE)).final_output
        if number == 2 and begun == 0:
            raise ValueError("lost its thread")
    return Outcome.candidate(said)


async def test_the_history_of_an_attempt_that_failed_is_that_of_the_next(tmp_path: Path) -> None:
    worker = LayeredWorker(plan(), converses).worker("converses")
    async with hosted(tmp_path, worker, anything) as dagbok:
        result = await dagbok.run(TaskSpec(id="talk", goal="talk", worker="converses", verifier="any", max_attempts=3))
        failed = await events_of(dagbok, AttemptFailed)
        session = (await dagbok.session(result.run, "talk")).value
    assert len(failed) == 1
    assert result.json() == "before: ['one', 'two', 'three']"
    items = session["layers"]["history"]["state"]["items"]
    assert [item["role"] for item in items] == ["user", "assistant"] * 4


async def test_a_call_in_which_an_attempt_was_killed_is_shown_as_interrupted() -> None:
    running = asyncio.Event()

    async def look() -> str:
        """Look around."""
        running.set()
        await asyncio.Event().wait()
        raise AssertionError

    def model(asked: Asked) -> str | Call:
        return f"my call: {asked.returned}" if len(asked.said) == 2 else Call("look", {})

    async def loop(attempt: LayeredAttempt) -> Outcome:
        session = attempt.run.get_layer("history", OpenAIAgentsSessionLayer).session(attempt.put_down)
        agent = agent_of(attempt.run, model=AnsweringModel(model))
        result = await Runner.run(agent, "look around", session=session, run_config=OFFLINE)
        return Outcome.candidate(result.final_output)

    worker, task = LayeredWorker(plan(look), loop), context()
    left = await left_when_cut(worker, task, running)
    kept = left["layers"]["history"]["state"]["items"]
    assert kept == [{"content": "look around", "role": "user"}]
    # This version keeps a call together with its output; one that keeps calls at once leaves an open one behind.
    call = {"type": "function_call", "name": "look", "arguments": "{}", "call_id": "c1"}
    left["layers"]["history"]["state"]["items"] = [kept[0], call]
    later = context(session=left)
    outcome = await worker.work(later)
    assert outcome.artifacts["result"].content == f"my call: {[INTERRUPTED]}"


async def test_a_session_is_one_of_the_sdk_over_the_state_of_the_layer() -> None:
    downs = 0

    async def put_down() -> None:
        nonlocal downs
        downs += 1

    async with plan().enter(configs={"history": OpenAIAgentsSessionConfig(max_items=3)}) as run:
        run.suspend_on_exit()
        session = run.get_layer("history", OpenAIAgentsSessionLayer).session(put_down)
        assert isinstance(session, Session)
        items: list[Any] = [{"role": role, "content": str(at)} for at in range(4) for role in ("user", "assistant")]
        await session.add_items(items)
        assert await session.get_items() == items[-2:]
        assert await session.get_items(limit=8) == items
        assert await session.get_items(limit=0) == []
        assert await session.pop_item() == items[-1]
        assert await session.get_items(limit=100) == items[:-1]
        given: list[Any] = await session.get_items(limit=100)
        given[0]["content"] = "changed"
        assert await session.get_items(limit=100) == items[:-1]
        assert downs == 2
    snapshot = run.session_snapshot
    assert snapshot is not None
    async with plan().enter(session_snapshot=snapshot.model_dump_json()) as again:
        later = again.get_layer("history", OpenAIAgentsSessionLayer).session()
        assert await later.get_items() == items[:-1]
        await later.clear_session()
        assert await later.pop_item() is None
        assert await later.get_items() == []


def calls(*ids: str) -> Iterator[dict[str, Any]]:
    yield from ({"type": "function_call", "call_id": each, "name": "x", "arguments": "{}"} for each in ids)


def outputs(*ids: str) -> Iterator[dict[str, Any]]:
    yield from ({"type": "function_call_output", "call_id": each, "output": "done"} for each in ids)


def test_open_calls_are_closed_behind_the_calls_they_were_made_with() -> None:
    user: dict[str, Any] = {"role": "user", "content": "go"}
    assert closed([user, *calls("a", "b"), *outputs("b"), user]) == [
        *(user, *calls("a", "b")),
        {"type": "function_call_output", "call_id": "a", "output": INTERRUPTED},
        *(*outputs("b"), user),
    ]
    done = [user, *calls("a"), *outputs("a")]
    assert closed(done) == done
    assert closed([*calls("a")])[-1]["output"] == INTERRUPTED


def call(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "call_id": "a", **more}


ANSWERED_BY_THE_PROGRAM = {
    "custom_tool_call": call("custom_tool_call"),
    "local_shell_call": call("local_shell_call"),
    "shell_call": call("shell_call"),
    "shell_call here": call("shell_call", environment={"type": "local"}),
    "apply_patch_call": call("apply_patch_call"),
    "tool_search_call": call("tool_search_call", execution="client"),
    "function_call of a program": call("function_call", caller={"type": "program", "caller_id": "p"}),
}


@pytest.mark.parametrize("open_call", ANSWERED_BY_THE_PROGRAM.values(), ids=ANSWERED_BY_THE_PROGRAM)
def test_every_kind_of_call_that_a_program_answers_is_closed(open_call: dict[str, Any]) -> None:
    user: dict[str, Any] = {"role": "user", "content": "go"}
    *before, answer, after = closed([user, open_call, user])
    assert (before, after) == ([user, open_call], user)
    assert answer["type"] in (f"{open_call['type']}_output", "tool_search_output")
    assert (answer["call_id"], answer.get("caller")) == ("a", open_call.get("caller"))
    assert closed([open_call, answer]) == [open_call, answer]


def test_a_computer_of_which_nobody_has_a_picture_gives_way_to_a_message() -> None:
    user: dict[str, Any] = {"role": "user", "content": "go"}
    thought: dict[str, Any] = {"type": "reasoning", "id": "r"}
    open_call, picture = call("computer_call"), call("computer_call_output", output={"type": "computer_screenshot"})
    left = closed([user, thought, open_call, user])
    assert left == [user, {"role": "developer", "content": f"computer {INTERRUPTED}"}, user]
    assert closed([user, thought, open_call, picture]) == [user, thought, open_call, picture]


@pytest.mark.parametrize(
    "theirs",
    [
        call("web_search_call"),
        call("tool_search_call", execution="server"),
        call("shell_call", environment={"type": "container_reference"}),
    ],
)
def test_a_call_that_the_provider_answers_is_left_to_it(theirs: dict[str, Any]) -> None:
    assert closed([theirs]) == [theirs]


def test_a_local_shell_may_be_answered_by_id() -> None:
    answered = [call("local_shell_call"), {"type": "local_shell_call_output", "id": "a", "output": "done"}]
    assert closed(answered) == answered


def test_a_window_begins_with_what_a_user_said() -> None:
    exchange: list[dict[str, Any]] = [{"role": "user"}, *calls("a"), *outputs("a"), {"role": "assistant"}]
    items = exchange * 3
    assert [turn_start(items, at_most) for at_most in (1, 4, 7, 8, 11, 12, 50)] == [8, 8, 8, 4, 4, 0, 0]
    assert turn_start(items[1:4] * 3, 2) == 0
    assert turn_start([], 5) == 0
