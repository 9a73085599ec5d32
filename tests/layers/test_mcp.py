"""The tools of a real MCP server, in a process of its own, as a layer."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from dagbok import Outcome
from dagbok.agents.layers import Compositor, LayerNode, PlainToolType, PromptLayer, parameters_of
from dagbok.agents.layers.durable import LayeredAttempt, LayeredWorker
from dagbok.agents.layers.mcp import MCP_TOOLS_LAYER_TYPE_ID, HttpServer, MCPToolsConfig, MCPToolsLayer, StdioServer
from dagbok.agents.layers.pydantic_ai import PYDANTIC_AI_TRANSFORMERS
from dagbok.testing import context

PROGRAM = Path(__file__).with_name("mcp_server.py")
USABLE = frozenset({"add", "fail", "never", "long", "picture", "die", "process", "variable", "authorization"})


def stdio(how: str = "stdio", **env: str) -> StdioServer:
    return StdioServer(command=sys.executable, args=(str(PROGRAM), how), env=env)


def config(server: StdioServer | HttpServer | None = None, **more: Any) -> MCPToolsConfig:
    return MCPToolsConfig(**{"server": server or stdio(), "allow": USABLE, **more})


Tools = dict[str, Callable[..., Any]]


@asynccontextmanager
async def entered(given: MCPToolsConfig) -> AsyncIterator[Tools]:
    compositor: Compositor[Any, Any, PlainToolType] = Compositor([LayerNode("server", MCPToolsLayer)])
    async with compositor.enter(configs={"server": given}) as run:
        yield {tool.value.__name__: tool.value for tool in run.tools}


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_its_tools_are_those_that_the_server_lists() -> None:
    async with entered(config(prefix="t_")) as tools:
        assert set(tools) == {f"t_{name}" for name in USABLE}
        add = tools["t_add"]
        assert add.__doc__ == "Add two numbers."
        assert str(inspect.signature(add)) == "(*, a: int, b: int | None = None)"
        schema = parameters_of(add)
        assert schema is not None
        assert schema["required"] == ["a"]
        assert await add(a=2) == "3"
        assert await asyncio.gather(*(add(a=number, b=0) for number in range(5))) == ["0", "1", "2", "3", "4"]


async def test_an_agent_of_pydantic_ai_calls_them() -> None:
    shown: list[dict[str, Any]] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        returned = [part.content for each in messages for part in each.parts if isinstance(part, ToolReturnPart)]
        shown.extend(tool.parameters_json_schema for tool in info.function_tools if tool.name == "add")
        answer = TextPart(str(returned[0])) if returned else ToolCallPart("add", {"a": 2, "b": 5})
        return ModelResponse(parts=[answer])

    plan = Compositor([LayerNode("server", MCPToolsLayer)], **PYDANTIC_AI_TRANSFORMERS)
    async with plan.enter(configs={"server": config()}) as run:
        agent = Agent(FunctionModel(model), tools=run.tools)
        assert (await agent.run("2 and 5?")).output == "7"
    assert shown[0]["properties"]["a"]["type"] == "integer"


async def test_what_a_tool_cannot_do_is_its_answer() -> None:
    async with entered(config(answer_chars=50)) as tools:
        assert await tools["fail"]() == "The tool failed: Error executing tool fail: no disk left"
        assert (await tools["add"](a="many")).startswith("The tool failed: ")
        assert await tools["long"](size=55) == "x" * 50 + "\n[5 characters more]"
        assert await tools["picture"]() == "[image/png, 16 bytes, not shown]"


async def test_a_call_that_takes_too_long_is_told_and_the_next_is_answered() -> None:
    async with entered(config(call_timeout_s=1)) as tools:
        assert await tools["never"]() == "The tool did not answer within 1 s. Nobody knows how far it got."
        assert await tools["add"](a=1) == "2"


@pytest.mark.parametrize(
    ("server", "said"),
    [
        (StdioServer(command="no-such-program-here"), "MCP server 'no-such-program-here' cannot be connected to"),
        (stdio("short-lived"), "cannot be connected to: MCPError: Connection closed"),
        (HttpServer(url="http://127.0.0.1:9/mcp?page=1"), r"MCP server at http://127.0.0.1:9/mcp cannot be connected"),
        (stdio(TOKEN="${NOT_SET_HERE}"), "these environment variables are not set: NOT_SET_HERE"),
    ],
)
async def test_a_server_that_is_not_there_is_told_as_that(server: StdioServer | HttpServer, said: str) -> None:
    with pytest.raises(ConnectionError, match=said):
        async with entered(config(server)):
            raise AssertionError


async def test_a_server_that_does_not_answer_is_told_in_time() -> None:
    with pytest.raises(TimeoutError, match=r"did not answer within 0\.5 s"):
        async with entered(config(stdio("silent"), connect_timeout_s=0.5)):
            raise AssertionError


async def test_who_is_cancelled_while_connecting_need_not_wait_for_the_server() -> None:
    asked = asyncio.Event()

    async def never_answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await reader.read()
        writer.close()

    async def body(url: str) -> None:
        async with entered(config(HttpServer(url=url), connect_timeout_s=300)):
            raise AssertionError

    async with await asyncio.start_server(never_answers, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        task = asyncio.ensure_future(body(f"http://127.0.0.1:{port}/mcp"))
        await asked.wait()
        task.cancel()
        async with asyncio.timeout(20):
            with pytest.raises(asyncio.CancelledError):
                await task


async def test_a_server_that_dies_is_told_by_the_call_and_the_next_run_has_another() -> None:
    with pytest.raises(ConnectionError, match="is gone"):
        async with entered(config()) as tools:
            await tools["die"]()
    async with entered(config()) as tools:
        with pytest.raises(ConnectionError, match="is gone"):
            await tools["die"]()
        with pytest.raises(ConnectionError, match="is gone"):
            await tools["add"](a=1)
    async with entered(config()) as tools:
        assert await tools["add"](a=1) == "2"


@pytest.mark.parametrize("ending", ["ends", "raises", "is cancelled", "is cancelled in a call"])
async def test_the_server_ends_with_the_run(ending: str) -> None:
    pid, running = 0, asyncio.Event()

    async def body() -> None:
        nonlocal pid
        async with entered(config()) as tools:
            pid = int(await tools["process"]())
            assert is_alive(pid)
            running.set()
            if ending == "raises":
                raise LookupError("broke")
            if ending == "is cancelled":
                await asyncio.Event().wait()
            if ending == "is cancelled in a call":
                await tools["never"]()

    task = asyncio.ensure_future(body())
    await running.wait()
    if ending.startswith("is cancelled"):
        task.cancel()
    ended = (await asyncio.gather(task, return_exceptions=True))[0]
    wanted = {"ends": type(None), "raises": LookupError}.get(ending, asyncio.CancelledError)
    assert type(ended) is wanted
    assert not is_alive(pid)


async def test_all_that_is_wrong_with_names_is_told_at_once() -> None:
    wrong = config(allow={"add", "add.more", "gone"}, rename={"process": "add", "away": "x"})
    with pytest.raises(ValueError, match=r"'away' is not there; 'gone' is not there; 'add\.more' is not 1 to 64"):
        async with entered(wrong):
            raise AssertionError
    with pytest.raises(ValueError, match="'add' is given 2 times"):
        async with entered(config(allow={"add", "add.more"}, rename={"add.more": "add"})):
            raise AssertionError
    async with entered(config(allow={"add", "add.more"}, rename={"add.more": "add_more"})) as tools:
        assert await tools["add_more"](a=1) == "2"


async def test_secrets_are_named_and_looked_up_when_the_server_is_connected_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OUR_KEY", "s3cret")
    monkeypatch.setenv("OTHER", "not for the server")
    given = config(stdio(SERVER_TOKEN="${OUR_KEY}", LEVEL="3"))
    plan: Compositor[Any, Any, PlainToolType] = Compositor([LayerNode("server", MCPToolsLayer)])
    async with plan.enter(configs={"server": given}) as run:
        run.suspend_on_exit()
        variable = next(tool.value for tool in run.tools if tool.value.__name__ == "variable")
        said = [await variable(name=name) for name in ("SERVER_TOKEN", "LEVEL", "OTHER", "OUR_KEY")]
    assert said == ["s3cret", "3", "not set", "not set"]
    assert run.session_snapshot is not None
    assert "s3cret" not in run.session_snapshot.model_dump_json() + given.model_dump_json()


@pytest.mark.parametrize(
    "server",
    [
        {"transport": "stdio", "command": "x", "env": {"GITHUB_TOKEN": "ghp_1"}},
        {"transport": "http", "url": "https://host/mcp", "headers": {"Authorization": "Bearer abc"}},
        {"transport": "http", "url": "https://host/mcp", "headers": {"X-Api-Key": "abc"}},
        {"transport": "http", "url": "https://me:password@host/mcp"},
        {"transport": "http", "url": "https://host/mcp?api_key=abc"},
    ],
)
def test_a_secret_that_is_written_is_refused(server: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=r"name secrets instead of writing them|should match pattern"):
        MCPToolsConfig.model_validate({"server": server})


@pytest.mark.parametrize(
    "server",
    [
        {"transport": "stdio", "command": "x", "env": {"TOKENIZERS_PARALLELISM": "false", "MAX_TOKENS": "5"}},
        {"transport": "http", "url": "https://host/@me/mcp?key=${OUR_KEY}&page=1", "headers": {"Accept": "text/html"}},
    ],
)
def test_what_is_no_secret_is_written_as_it_is(server: dict[str, Any]) -> None:
    assert MCPToolsConfig.model_validate({"server": server}).server.model_dump(exclude_unset=True) == server


@pytest.fixture
def over_http() -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    with subprocess.Popen([sys.executable, str(PROGRAM), "http"], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp", process
        finally:
            process.kill()


async def test_over_http(over_http: tuple[str, subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUR_KEY", "s3cret")
    url, process = over_http
    server = HttpServer(url=f"{url}?key=${{OUR_KEY}}", headers={"Authorization": "Bearer ${OUR_KEY}"})
    async with entered(config(server, call_timeout_s=1)) as tools:
        assert await tools["add"](a=2, b=3) == "5"
        assert await tools["authorization"]() == "Bearer s3cret"
        assert "did not answer" in await tools["never"]()
        assert "no disk left" in await tools["fail"]()
    async with entered(config(server)) as tools:
        process.kill()
        await asyncio.to_thread(process.wait)
        with pytest.raises(ConnectionError, match=r"MCP server at http://127\.0\.0\.1:\d+/mcp is gone"):
            await tools["add"](a=1)


async def test_in_a_task_and_from_a_graph_config() -> None:
    graph = {"layers": [{"name": "told", "type": "plain.prompt"}, {"name": "server", "type": MCP_TOOLS_LAYER_TYPE_ID}]}
    plan: Compositor[Any, Any, PlainToolType] = Compositor.from_config(graph, providers=[PromptLayer, MCPToolsLayer])
    written = json.loads(config(allow={"add"}).model_dump_json())

    async def loop(attempt: LayeredAttempt) -> Outcome:
        add = attempt.run.tools[0].value
        return Outcome.candidate(await add(a=20, b=22))

    task = context()
    outcome = await LayeredWorker(plan, loop, configs={"server": written}).work(task)
    assert outcome.artifacts["result"].content == "42"
    assert task.session.load()["layers"]["server"] == {"type": "dagbok.mcp", "lifecycle": "suspended", "state": {}}


async def test_a_layer_that_is_not_active_has_no_tools() -> None:
    layer = Compositor([LayerNode("server", MCPToolsLayer)]).nodes[0].provider.create_layer(config())
    with pytest.raises(RuntimeError, match="not active"):
        _ = layer.tools
