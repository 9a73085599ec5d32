"""An MCP server for tests: over stdio, or over HTTP on a port that it says on its standard output.

    python mcp_server.py stdio | http | silent | short-lived
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from contextvars import ContextVar
from typing import Any

import uvicorn
from mcp.server.mcpserver import Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

SEEN: ContextVar[str] = ContextVar("SEEN", default="")
PIXEL = bytes.fromhex("89504e470d0a1a0a0000000d49484452")


async def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


async def fail() -> str:
    """Fail."""
    raise ToolError("no disk left")


async def never() -> str:
    """Never answer."""
    await asyncio.Event().wait()
    return ""


async def long(size: int) -> str:
    """A long text."""
    return "x" * size


async def picture() -> Image:
    """A picture."""
    return Image(data=PIXEL, format="png")


async def die() -> str:
    """End the server."""
    os._exit(3)


async def process() -> int:
    """Its id."""
    return os.getpid()


async def variable(name: str) -> str:
    """A variable of the environment of the server."""
    return os.environ.get(name, "not set")


async def authorization() -> str:
    """What the client showed."""
    return SEEN.get()


def server() -> MCPServer:
    found = MCPServer("tests", log_level="ERROR")
    for function in (add, fail, never, long, picture, die, process, variable, authorization):
        found.tool()(function)
    found.tool(name="add.more")(add)
    return found


async def over_http() -> None:
    app: Any = server().streamable_http_app()

    async def seeing(scope: Any, receive: Any, send: Any) -> None:
        SEEN.set(dict(scope.get("headers", ())).get(b"authorization", b"").decode())
        await app(scope, receive, send)

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()  # before anybody knows the port
        print(listening.getsockname()[1], flush=True)  # noqa: T201 - the test reads it
        await uvicorn.Server(uvicorn.Config(seeing, log_level="error")).serve(sockets=[listening])


def main(how: str) -> None:
    if how == "stdio":
        server().run("stdio")
    elif how == "http":
        asyncio.run(over_http())
    elif how == "silent":
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1])
