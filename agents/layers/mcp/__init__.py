"""A layer of the tools of an MCP server (extra `mcp`; docs/layers.md, "Tools of MCP servers")."""

from dagbok.events.extras import install

try:
    import mcp as _needed  # noqa: F401
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(f"this layer needs the MCP SDK; {install('mcp')}", name=missing.name) from missing

from dagbok.agents.layers.mcp.config import HttpServer, MCPToolsConfig, StdioServer
from dagbok.agents.layers.mcp.layer import MCP_TOOLS_LAYER_TYPE_ID, MCPToolsLayer

__all__ = [
    "MCP_TOOLS_LAYER_TYPE_ID",
    "HttpServer",
    "MCPToolsConfig",
    "MCPToolsLayer",
    "StdioServer",
]
