"""The tools of an MCP server as a layer: the server is connected to while the layer is active."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

from mcp import Client, MCPError
from mcp.types import REQUEST_TIMEOUT, Tool

from dagbok.agents.layers.deps import NoLayerDeps
from dagbok.agents.layers.described import described_tool
from dagbok.agents.layers.families import PlainLayer
from dagbok.agents.layers.mcp.answers import answer
from dagbok.agents.layers.mcp.config import MCPToolsConfig
from dagbok.agents.layers.mcp.connecting import connected, is_gone, listed, reason
from dagbok.agents.layers.tags import PlainTool
from dagbok.agents.layers.tool_names import naming_problems

MCP_TOOLS_LAYER_TYPE_ID: Final = "dagbok.mcp"


class MCPToolsLayer(PlainLayer[NoLayerDeps, MCPToolsConfig]):
    """Gives the tools that the server lists when the layer is entered, with the schemas that it says.

    Entering raises ConnectionError (TimeoutError) for a server that is not there, and ValueError for names that are no
    names of tools, are given twice, or are allowed or renamed and not there. What a tool cannot do, or not in time, the
    model reads in its answer. A call of a server that has gone meanwhile raises ConnectionError: the next run connects
    anew. Nothing of it is kept between runs.
    """

    type_id = MCP_TOOLS_LAYER_TYPE_ID
    _tools: Sequence[PlainTool] | None = None

    @asynccontextmanager
    async def resource_context(self) -> AsyncIterator[None]:
        async with connected(self.config) as client:
            self._tools = self._described(client, await listed(client, self.config))
            try:
                yield
            finally:
                self._tools = None

    @property
    def tools(self) -> Sequence[PlainTool]:
        if self._tools is None:
            raise RuntimeError("The MCP tools layer is not active: its tools are those of a server it is connected to")
        return list(self._tools)

    def _described(self, client: Client, tools: Sequence[Tool]) -> list[PlainTool]:
        config = self.config
        self._check(tools)
        return [
            described_tool(
                partial(self._call, client, tool.name),
                name=self._name(tool.name),
                description=tool.description or tool.title or "",
                parameters=tool.input_schema,
            )
            for tool in tools
            if config.allow is None or tool.name in config.allow
        ]

    def _check(self, tools: Sequence[Tool]) -> None:
        config, there = self.config, Counter(tool.name for tool in tools)
        wanted = (config.allow or frozenset()) | config.rename.keys()
        problems = [f"{name!r} is not there" for name in sorted(wanted - there.keys())]
        taken = [name for name in there.elements() if config.allow is None or name in config.allow]
        problems += naming_problems(map(self._name, taken))
        if problems:
            raise ValueError(f"Tools of {config.server.said}: {'; '.join(problems)}")

    def _name(self, name: str) -> str:
        return self.config.prefix + self.config.rename.get(name, name)

    async def _call(self, client: Client, name: str, arguments: dict[str, Any]) -> str:
        config = self.config
        try:
            result = await client.call_tool(name, arguments, read_timeout_seconds=config.call_timeout_s)
        except MCPError as error:
            if error.code == REQUEST_TIMEOUT:
                return f"The tool did not answer within {config.call_timeout_s:g} s. Nobody knows how far it got."
            if is_gone(error):
                raise ConnectionError(f"{config.server.said} is gone: {reason(error)}") from error
            return f"The tool could not be called: {reason(error)}"
        except ValueError as malformed:  # also pydantic's ValidationError
            return f"The tool gave no valid answer: {reason(malformed)}"
        return answer(result, config.answer_chars)
