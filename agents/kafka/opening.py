"""Waiting for a broker or a database that cannot be reached yet: nobody waits without a word."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import structlog

from dagbok.agents.kafka.health import Health
from dagbok.events.errors import DagbokError
from dagbok.projections.patience import patiently
from dagbok.projections.store import Tables

logger = structlog.get_logger(__name__)

T = TypeVar("T")

LONGEST_PAUSE_S: Final = 5.0


async def opened(what: str, open: Callable[[], Awaitable[T]], health: Health) -> T:
    """What `open` gives, as soon as it can. `what` it is stands in the line that is logged before each further try, and
    in `health`. Raises an error that does not pass by itself, such as settings that cannot be used."""

    def waits(error: DagbokError, delay_s: float) -> None:
        health.waits(what, error)
        logger.warning(
            "waiting", what=what, code=str(error.code), error=error.message, advice=error.advice, again_s=delay_s
        )

    return await patiently(open, waits, longest_delay_s=LONGEST_PAUSE_S)


async def opened_tables(url: str, health: Health) -> Tables:
    """The tables of a database, as soon as it can be reached. Raises like `Tables.connect`, without what passes."""
    return await opened("database", lambda: asyncio.to_thread(Tables.connect, url), health)
