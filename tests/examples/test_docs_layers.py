"""What docs/layers.md shows of MCP servers and of the OpenAI Agents SDK is run as it stands there."""

from __future__ import annotations

import re
from typing import Any

from agents import set_tracing_disabled  # noqa: TID251 - the SDK is called so

from dagbok import Outcome
from dagbok.agents.layers import Compositor, LayerNode, PromptLayer
from dagbok.agents.layers.durable import LayeredAttempt, LayeredWorker
from dagbok.agents.layers.mcp import MCPToolsConfig, MCPToolsLayer
from dagbok.agents.layers.pydantic_ai import PYDANTIC_AI_TRANSFORMERS
from dagbok.testing import context
from tests.support.lightagent_env import ROOT
from tests.support.openai_agents_model import AnsweringModel

PAGE = ROOT / "docs" / "layers.md"
KNOWN: dict[str, Any] = {
    "Compositor": Compositor,
    "LayerNode": LayerNode,
    "LayeredAttempt": LayeredAttempt,
    "Outcome": Outcome,
    "PYDANTIC_AI_TRANSFORMERS": PYDANTIC_AI_TRANSFORMERS,
    "PromptLayer": PromptLayer,
}


def block(heading: str) -> str:
    """The program under a heading."""
    section = PAGE.read_text().split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    (found,) = re.findall(r"^```python\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    return str(found)


def names_of(program: str) -> dict[str, Any]:
    names = dict(KNOWN)
    exec(program, names)
    return names


def test_the_servers_that_are_shown_are_taken() -> None:
    names = names_of(block("Tools of MCP servers"))
    nodes = {node.name: node.provider for node in names["compositor"].nodes}
    assert {provider.layer_type for provider in nodes.values()} == {MCPToolsLayer}
    checked = [nodes[name].validate_config(config) for name, config in names["configs"].items()]
    assert [type(config) for config in checked] == [MCPToolsConfig, MCPToolsConfig]


async def test_the_loop_that_is_shown_keeps_its_session() -> None:
    set_tracing_disabled(True)
    program = block("With the OpenAI Agents SDK")
    names = names_of(program.replace('model="…"', "model=model"))
    names["model"] = AnsweringModel(lambda asked: f"{asked.instructions}: {asked.said}")
    worker = LayeredWorker(names["compositor"], names["loop"], configs={"told": {"prefix": "be brief", "user": "one"}})
    task = context()
    await worker.work(task)
    outcome = await worker.work(context(session=task.session.load()))
    assert outcome.artifacts["result"].content == "be brief: ['one', 'one']"
