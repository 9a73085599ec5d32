"""A layer of functions as tools."""

from __future__ import annotations

from collections.abc import Sequence

from dagbok.agents.layers.deps import NoLayerDeps
from dagbok.agents.layers.families import PlainLayer
from dagbok.agents.layers.tags import PlainTool


class ToolsLayer(PlainLayer[NoLayerDeps]):
    """Gives the functions that it was made with."""

    def __init__(self, tool_entries: Sequence[PlainTool] = ()) -> None:
        self.tool_entries = tuple(tool_entries)

    @property
    def tools(self) -> Sequence[PlainTool]:
        return list(self.tool_entries)
