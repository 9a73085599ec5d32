"""A layer of the tools of an MCP server (`pip install dagbok[mcp]`; docs/layers.md, "Tools of MCP servers")."""

try:
    import mcp as _needed  # noqa: F401
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError("this layer needs the MCP SDK: pip install 'dagbok[mcp]'", name=missing.name) from missing

from dagbok.agents.layers.mcp.config import HttpServer, MCPToolsConfig, StdioServer
from dagbok.agents.layers.mcp.layer import MCP_TOOLS_LAYER_TYPE_ID, MCPToolsLayer

__all__ = [
    "MCP_TOOLS_LAYER_TYPE_ID",
    "HttpServer",
    "MCPToolsConfig",
    "MCPToolsLayer",
    "StdioServer",
]
