"""A broker is ready when it does what tests ask of it, not when its log says so."""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError

READY_S: Final = 60.0
POLL_S: Final = 0.1


class NotReady(Exception):
    """The broker has not become ready in time, or has ended."""


def await_ready(bootstrap: str, alive: Callable[[], bool] = lambda: True, timeout_s: float = READY_S) -> None:
    """Block until a TCP connection, ApiVersions, and the making and removing of a topic succeed. Raises `NotReady` when
    they do not within `timeout_s`, or the process of the broker is no longer `alive`."""
    with ThreadPoolExecutor(1) as beside:  # whoever calls may have a loop of its own
        beside.submit(lambda: asyncio.run(_await_ready(bootstrap, alive, timeout_s))).result()


async def _await_ready(bootstrap: str, alive: Callable[[], bool], timeout_s: float) -> None:
    logger = logging.getLogger("aiokafka")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # each look before it is up would be an error in the log
    try:
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                async with asyncio.timeout(10):
                    await _try(bootstrap)
                return
            except (KafkaError, OSError, TimeoutError) as error:
                if not alive():
                    raise NotReady("the broker has ended") from error
                if time.monotonic() > deadline:
                    raise NotReady(f"no broker answers at {bootstrap}: {error!r}") from error
            await asyncio.sleep(POLL_S)
    finally:
        logger.setLevel(level)


async def _try(bootstrap: str) -> None:
    await asyncio.to_thread(_connect, bootstrap)
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=10_000)
    try:
        await admin.start()
        name = f"ready-{secrets.token_hex(8)}"
        made = await admin.create_topics([NewTopic(name, 1, 1)])
        if any(code for _, code, *_ in made.topic_errors):
            raise KafkaError(f"no topic could be made: {made}")
        await admin.delete_topics([name])
    finally:
        await admin.close()


def _connect(bootstrap: str) -> None:
    host, _, port = bootstrap.split(",")[0].rpartition(":")
    socket.create_connection((host, int(port)), timeout=5).close()
