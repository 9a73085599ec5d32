"""Health and metrics over HTTP, for what starts and watches processes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import msgspec
import structlog
from aiohttp import web

from dagbok.agents.kafka.health import Health
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput

logger = structlog.get_logger(__name__)

METRICS_TYPE = "text/plain; version=1.0.0; charset=utf-8"


@asynccontextmanager
async def serving(health: Health, host: str, port: int) -> AsyncIterator[int]:
    """Serve `/health/live`, `/health/ready` (200, or 503 with what is wrong) and `/metrics` on `host`, and give the
    port: the one that is asked for, or a free one for 0. Raises `InvalidInput` when that cannot be listened on."""
    runner = web.AppRunner(_application(health), access_log=None, handle_signals=False)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            told = f"cannot serve health on {host}:{port}: {error.strerror or error}"
            raise InvalidInput(told, code=Code.USAGE, advice="choose another --health-port or --health-host") from error
        found: int = runner.addresses[0][1]
        logger.info("health.serving", host=host, port=found)
        yield found
    finally:
        await runner.cleanup()


def _application(health: Health) -> web.Application:
    async def live(_: web.Request) -> web.Response:
        return _answer(health, health.dead)

    async def ready(_: web.Request) -> web.Response:
        return _answer(health, [*health.dead, *health.unready])

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=health.metrics.text(), headers={"Content-Type": METRICS_TYPE})

    application = web.Application()
    application.add_routes(
        [web.get("/health/live", live), web.get("/health/ready", ready), web.get("/metrics", metrics)]
    )
    return application


def _answer(health: Health, wrong: Sequence[str]) -> web.Response:
    body = msgspec.json.encode(health.told())
    return web.Response(body=body, status=503 if wrong else 200, content_type="application/json")
