"""A connection to an MCP server, and what goes wrong with it in words."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, Final, TextIO

import httpx2
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CONNECTION_CLOSED, Tool

from dagbok.agents.layers.mcp.config import HttpServer, MCPToolsConfig, StdioServer, resolved

MAX_PAGES: Final = 100
"""A server that lists more pages of tools goes in circles."""


@asynccontextmanager
async def connected(config: MCPToolsConfig) -> AsyncIterator[Client]:
    """A client of the server, initialised, and closed behind the body however that ends.

    It lives in a task of its own: its task groups cancel the task that entered them when the connection breaks, and
    that must not end the other layers. Calls tell of a broken connection, closing does not.

    Raises ConnectionError (TimeoutError for a server that does not answer), which names the server and never a secret.
    """
    opened: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
    closing = asyncio.Event()
    living = asyncio.create_task(_live(config, opened, closing), name="dagbok.layers.mcp")
    try:
        yield await _first(opened, living)
    finally:
        closing.set()
        if not opened.done():
            living.cancel()
        await _ended(living)


async def _first(opened: asyncio.Future[Client], living: asyncio.Task[None]) -> Client:
    either: set[asyncio.Future[Any]] = {opened, living}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if not opened.done():
        living.result()  # raises: it ends only with an error before it is open
    return opened.result()


async def _ended(living: asyncio.Task[None]) -> None:
    """Wait for the end; a cancellation meanwhile cuts it short, and is raised when it has come."""
    try:
        await asyncio.wait({living})
    except asyncio.CancelledError:
        living.cancel()
        await asyncio.wait({living})
        raise
    finally:
        if living.done() and not living.cancelled():
            living.exception()  # looked at: calls tell of it


async def _live(config: MCPToolsConfig, opened: asyncio.Future[Client], closing: asyncio.Event) -> None:
    server = config.server
    async with AsyncExitStack() as stack:
        try:
            async with asyncio.timeout(config.connect_timeout_s):
                transport = await _transport(server, stack)
                client = await stack.enter_async_context(Client(transport))
        except TimeoutError as late:
            raise TimeoutError(f"{server.said} did not answer within {config.connect_timeout_s:g} s") from late
        except Exception as failed:
            raise ConnectionError(f"{server.said} cannot be connected to: {reason(failed)}") from failed
        opened.set_result(client)
        await closing.wait()


async def listed(client: Client, config: MCPToolsConfig) -> list[Tool]:
    """All tools of the server. Raises what `connected` raises."""
    found, cursor = list[Tool](), None
    try:
        async with asyncio.timeout(config.connect_timeout_s):
            for _ in range(MAX_PAGES):
                page = await client.list_tools(cursor=cursor)
                found += page.tools
                cursor = page.next_cursor
                if cursor is None:
                    return found
    except TimeoutError as late:
        said = f"{config.server.said} did not list its tools within {config.connect_timeout_s:g} s"
        raise TimeoutError(said) from late
    except Exception as failed:
        raise ConnectionError(f"{config.server.said} does not list its tools: {reason(failed)}") from failed
    raise ConnectionError(f"{config.server.said} lists more than {MAX_PAGES} pages of tools")


def is_gone(error: MCPError) -> bool:
    """Whether nobody is there any more, or nobody who knows this client."""
    return error.code == CONNECTION_CLOSED or error.message == "Session terminated"


def reason(error: BaseException) -> str:
    """The first error that is no group, in one line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return " ".join(f"{type(error).__name__}: {error}".split())


async def _transport(server: StdioServer | HttpServer, stack: AsyncExitStack) -> AbstractAsyncContextManager[Any]:
    if isinstance(server, HttpServer):
        url, headers = resolved({"url": server.url})["url"], resolved(server.headers)
        client = httpx2.AsyncClient(headers=headers, timeout=httpx2.Timeout(30.0, read=300.0))
        return streamable_http_client(url, http_client=await stack.enter_async_context(client))
    env = resolved(server.env)
    parameters = StdioServerParameters(command=server.command, args=list(server.args), env=env, cwd=server.cwd)
    return stdio_client(parameters, errlog=stack.enter_context(_errors()))


@contextmanager
def _errors() -> Iterator[TextIO]:
    """Where a server writes its errors: where this process does, if that is a file."""
    if sys.__stderr__ is not None:
        yield sys.__stderr__
        return
    with open(os.devnull, "w") as nowhere:
        yield nowhere
