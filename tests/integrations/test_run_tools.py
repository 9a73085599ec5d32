"""Tools with which an agent looks at runs and steers them: what they show, what they refuse, and how much they say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from dagbok import Dagbok, Outcome, Refused, TaskContext, Terminal, worker
from dagbok.agents.integrations.run_tools import RunTools, run_tools
from dagbok.agents.integrations.shown import MAX_PAGE_CHARS, MAX_TEXT_CHARS
from dagbok.events.log.port import COMMANDS
from dagbok.events.run.events import RunCancelled, RunPaused, RunResumed
from tests.support.hosts import events_of, hosted, spec, until

TENANT, PROJECT = "acme", "docs"
READING = ["list_runs", "get_run", "list_tasks", "events"]
CONTROLLING = ["pause", "resume", "cancel"]


@worker("echo")
async def echo(task: TaskContext) -> Outcome:
    """What it is given."""
    return Outcome.candidate(task.inputs)


@worker("patient")
async def patient(task: TaskContext) -> Outcome:
    """For ever."""
    await asyncio.Event().wait()
    raise AssertionError


@worker("broken")
async def broken(task: TaskContext) -> Outcome:
    """Fails for good."""
    raise Terminal("no such colour")


@asynccontextmanager
async def tools_of(folder: Path) -> AsyncIterator[tuple[Dagbok, RunTools]]:
    """An owner, and tools for `acme/docs` on it."""
    async with (
        hosted(folder, echo, patient, broken) as dagbok,
        run_tools(folder, tenant=TENANT, project=PROJECT, control=dagbok) as tools,
    ):
        yield dagbok, tools


def names(tools: RunTools, *, read_only: bool = False) -> list[str]:
    """The names that an agent sees."""
    return [function.__name__ for function in tools.functions(read_only=read_only)]


async def test_a_run_is_shown_with_its_status_its_counts_and_its_troubles(tmp_path: Path) -> None:
    async with tools_of(tmp_path) as (dagbok, tools):
        result = await dagbok.run(
            [spec("echo", id="fine"), spec("broken", id="wrong")], tenant=TENANT, project=PROJECT
        )
        shown: Any = await tools.get_run(result.run)
        listed: Any = await tools.list_runs()
    assert (shown["status"], shown["tasks"]) == ("failed", {"verified": 1, "failed": 1})
    (trouble,) = shown["troubled"]
    assert (trouble["task"], trouble["goal"], trouble["status"]) == ("wrong", "do it", "failed")
    assert trouble["problem"] == "worker_failed: Terminal: no such colour"
    assert [run["run"] for run in listed["runs"]] == [result.run]


async def test_tasks_are_listed_by_status_in_pages_that_lead_to_each_of_them_once(tmp_path: Path) -> None:
    async with tools_of(tmp_path) as (dagbok, tools):
        result = await dagbok.run(
            [spec("echo", id=f"t-{number}") for number in range(7)], tenant=TENANT, project=PROJECT
        )
        first: Any = await tools.list_tasks(result.run, limit=3)
        second: Any = await tools.list_tasks(result.run, after=first["next_after"], limit=3)
        third: Any = await tools.list_tasks(result.run, after=second["next_after"], limit=3)
        verified: Any = await tools.list_tasks(result.run, status="verified", limit=50)
        failed: Any = await tools.list_tasks(result.run, status="failed")
        wrong: Any = await tools.list_tasks(result.run, status="happy")
    found = [task["task"] for page in (first, second, third) for task in page["tasks"]]
    assert found == [f"t-{number}" for number in range(7)]
    assert third["next_after"] is None
    assert len(verified["tasks"]) == 7
    assert failed == {"tasks": [], "next_after": None}
    assert wrong["error"]["code"] == "usage"
    assert "verified" in wrong["error"]["advice"]


async def test_events_are_listed_from_where_the_agent_stopped_reading(tmp_path: Path) -> None:
    async with tools_of(tmp_path) as (dagbok, tools):
        result = await dagbok.run(spec("echo", inputs=1), tenant=TENANT, project=PROJECT)
        seen, after, pages = list[Any](), 0, 0
        while True:
            page: Any = await tools.events(result.run, after=after, limit=2)
            seen, pages = seen + page["events"], pages + 1
            if page["next_after"] is None:
                break
            after = page["next_after"]
        run: Any = await tools.get_run(result.run)
    assert [event["seq"] for event in seen] == list(range(1, run["last_event"] + 1))
    assert pages == -(-len(seen) // 2)
    assert {"RunStarted", "TaskVerified", "RunSucceeded"} <= {event["type"] for event in seen}


async def test_a_run_is_paused_resumed_and_cancelled_and_the_answer_shows_it(tmp_path: Path) -> None:
    async with tools_of(tmp_path) as (dagbok, tools):
        run = await dagbok.start(spec("patient"), tenant=TENANT, project=PROJECT)
        answers: list[Any] = [
            await tools.pause(run, reason="too dear"),
            await tools.resume(run, reason="found money"),
            await tools.cancel(run, reason="not needed"),
        ]
        kinds = (RunPaused, RunResumed, RunCancelled)
        events = [event for kind in kinds for event in await events_of(dagbok, kind)]
        causes = [event.reason for event in events if isinstance(event, kinds)]
        late: Any = await tools.pause(run, reason="again")
    assert [answer["status"] for answer in answers] == ["paused", "running", "cancelled"]
    assert causes == ["too dear", "found money", "not needed"]
    assert late["error"]["code"] == "run_closed"


@pytest.mark.parametrize(("tenant", "project"), [("evil", PROJECT), (TENANT, "other")], ids=["tenant", "project"])
@pytest.mark.parametrize("name", ["get_run", "list_tasks", "events", *CONTROLLING])
async def test_a_foreign_run_is_not_found_like_one_that_never_was_and_stays_as_it_is(
    tmp_path: Path, tenant: str, project: str, name: str
) -> None:
    more = {"reason": "mine now"} if name in CONTROLLING else {}
    async with hosted(tmp_path, patient) as dagbok:
        run = await dagbok.start(spec("patient"), tenant=TENANT, project=PROJECT)
        await until(dagbok, lambda: dagbok.progress(run, tenant=TENANT, project=PROJECT) == {"running": 1})
        async with run_tools(tmp_path, tenant=tenant, project=project, control=dagbok) as tools:
            (tool,) = [function for function in tools.functions() if function.__name__ == name]
            before = await dagbok.host.log.bounds(COMMANDS, 0)
            foreign, absent = await tool(run=run, **more), await tool(run="0" * len(run), **more)
            assert await dagbok.host.log.bounds(COMMANDS, 0) == before
            assert await tools.list_runs() == {"runs": []}
        assert dagbok.status(run, tenant=TENANT, project=PROJECT) == "running"
    assert foreign == {
        "error": {"code": "not_found", "message": f"there is no run {run}", "advice": "take an id from list_runs"}
    }
    assert json.dumps(foreign) == json.dumps(absent).replace("0" * len(run), run)


async def test_reading_tools_are_given_alone_and_the_others_only_with_someone_who_carries_them_out(
    tmp_path: Path,
) -> None:
    async with tools_of(tmp_path) as (dagbok, tools):
        assert names(tools) == READING + CONTROLLING
        assert names(tools, read_only=True) == READING
        run = await dagbok.start(spec("patient"), tenant=TENANT, project=PROJECT)
        async with run_tools(tmp_path, tenant=TENANT, project=PROJECT) as reading:
            assert names(reading) == READING
            refused: Any = await reading.cancel(run, reason="I want to")
        assert refused["error"]["code"] == "usage"
        assert dagbok.status(run, tenant=TENANT, project=PROJECT) == "running"


async def test_an_answer_has_a_size_that_an_agent_can_read(tmp_path: Path) -> None:
    async with tools_of(tmp_path) as (dagbok, tools):
        tasks = [
            spec("echo", id=f"t-{number}", goal="x" * 5_000, inputs={"long": ["y" * 2_000] * 40, "deep": [[[[[[1]]]]]]})
            for number in range(60)
        ]
        result = await dagbok.run(tasks, tenant=TENANT, project=PROJECT)
        listed: Any = await tools.list_tasks(result.run, limit=10_000)
        happened: Any = await tools.events(result.run, limit=10_000)
    for name, page in (("tasks", listed), ("events", happened)):
        assert 0 < len(json.dumps(page)) < 1.2 * MAX_PAGE_CHARS
        assert page["next_after"] is not None
        assert page[name]
    assert all(len(task["goal"]) == MAX_TEXT_CHARS for task in listed["tasks"])


async def test_tools_are_called_from_another_event_loop_as_frameworks_do(tmp_path: Path) -> None:
    async with tools_of(tmp_path) as (dagbok, tools):
        run = await dagbok.start(spec("patient"), tenant=TENANT, project=PROJECT)
        paused: Any = await asyncio.to_thread(lambda: asyncio.run(tools.pause(run, reason="from a thread")))
        unknown: Any = await asyncio.to_thread(lambda: asyncio.run(tools.get_run("nothing")))
    assert paused["status"] == "paused"
    assert unknown["error"]["code"] == "not_found"


async def test_without_an_owner_the_log_is_still_read(tmp_path: Path) -> None:
    async with hosted(tmp_path, echo) as dagbok:
        result = await dagbok.run(spec("echo", inputs=1), tenant=TENANT, project=PROJECT)
    async with run_tools(tmp_path, tenant=TENANT, project=PROJECT) as tools:
        shown: Any = await tools.get_run(result.run)
    assert shown["status"] == "succeeded"


async def test_a_folder_without_a_log_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no data folder"):
        async with run_tools(tmp_path / "nothing", tenant=TENANT, project=PROJECT):
            raise AssertionError
    assert not (tmp_path / "nothing").exists()


async def test_an_agent_of_pydantic_ai_finds_a_run_and_pauses_it(tmp_path: Path) -> None:
    def think(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        """Looks for a run, pauses it, and says so."""
        returned: list[Any] = [
            part.content for message in messages for part in message.parts if isinstance(part, ToolReturnPart)
        ]
        told = {tool.name: tool.parameters_json_schema for tool in info.function_tools}
        assert set(told) == {*READING, *CONTROLLING}
        assert set(told["pause"]["required"]) == {"run", "reason"}
        assert told["pause"]["properties"]["reason"]["description"] == "why, for whoever reads the log."
        if not returned:
            return ModelResponse(parts=[ToolCallPart("list_runs", {})])
        if len(returned) == 1:
            run = returned[0]["runs"][0]["run"]
            return ModelResponse(parts=[ToolCallPart("pause", {"run": run, "reason": "asked to"})])
        return ModelResponse(parts=[TextPart(f"It is {returned[1]['status']}.")])

    async with tools_of(tmp_path) as (dagbok, tools):
        run = await dagbok.start(spec("patient"), tenant=TENANT, project=PROJECT)
        agent = Agent(FunctionModel(think), tools=tools.functions())
        answered = await agent.run("Pause whatever runs.")
        assert answered.output == "It is paused."
        assert dagbok.status(run, tenant=TENANT, project=PROJECT) == "paused"
