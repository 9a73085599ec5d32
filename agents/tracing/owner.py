"""The tracing of the owner of a partition: from its outputs to an OTLP receiver."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import structlog

from dagbok.agents.scheduler.outputs import SchedulerOutputs
from dagbok.agents.tracing.switch import check
from dagbok.events.log.port import Log

if TYPE_CHECKING:
    from dagbok.agents.tracing.follower import TraceFollower
    from dagbok.agents.tracing.sink import SpanSink

logger = structlog.get_logger(__name__)

FLUSH_S = 5.0
"""How long the end of a process waits for the last spans to be sent; `OTEL_BSP_EXPORT_TIMEOUT` (milliseconds)
overrides it."""


class Tracing:
    """The tracing of one owner, while it runs; of nothing when tracing is off."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        """Raises like `check`, so that a host which cannot do what it is told does not begin."""
        self._environment = environment
        self._on = check(environment) and environment.get("OTEL_TRACES_EXPORTER", "").strip() != "none"
        self._flush_s = _number(environment, "OTEL_BSP_EXPORT_TIMEOUT", int(FLUSH_S * 1000)) / 1000
        self._following: tuple[TraceFollower, SpanSink, asyncio.Task[None]] | None = None
        self._unwatch: Callable[[], None] = _done

    def begin(self, log: Log, partition: int, outputs: SchedulerOutputs) -> None:
        """Send the spans of what an owner commits, from now on. To be called before the owner folds."""
        if not self._on:
            return
        follower, sink = _wired(log, partition, self._environment)
        self._unwatch = outputs.watch(follower.confirmed)
        self._following = follower, sink, asyncio.create_task(follower.run())

    async def close(self) -> None:
        """Send what ended so far, as far as there is time for it; what did not arrive by then is dropped, counted and
        logged. Idempotent."""
        self._unwatch()
        self._unwatch = _done
        if self._following is None:
            return
        follower, sink, running = self._following
        self._following = None
        loop = asyncio.get_running_loop()
        until_s = loop.time() + self._flush_s
        try:
            async with asyncio.timeout(self._flush_s):
                await follower.caught_up()
        except TimeoutError:
            logger.warning("tracing.behind", why="the log holds the rest: dagbok trace sends it")
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await sink.close(max(0.0, until_s - loop.time()))


def _wired(log: Log, partition: int, environment: Mapping[str, str]) -> tuple[TraceFollower, SpanSink]:
    from dagbok.agents.tracing.fold import SpanFold
    from dagbok.agents.tracing.follower import TraceFollower
    from dagbok.agents.tracing.process import ChildExporter
    from dagbok.agents.tracing.sampler import Sampler
    from dagbok.agents.tracing.sink import BATCH_SPANS, BUFFER_SPANS, DELAY_S, SpanSink

    exporter = ChildExporter(environment)
    sink = SpanSink(
        exporter.export,
        exporter.stop,
        buffer_spans=_number(environment, "OTEL_BSP_MAX_QUEUE_SIZE", BUFFER_SPANS),
        batch_spans=_number(environment, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", BATCH_SPANS),
        delay_s=_number(environment, "OTEL_BSP_SCHEDULE_DELAY", int(DELAY_S * 1000)) / 1000,
    )
    return TraceFollower(log, partition, SpanFold(Sampler().sampled), sink), sink


def _number(environment: Mapping[str, str], name: str, default: int) -> int:
    """As OpenTelemetry wants it: a wrong value is logged and the default taken."""
    value = environment.get(name, "").strip()
    if value.isascii() and value.isdigit() and int(value) > 0:
        return int(value)
    if value:
        logger.warning("tracing.setting_ignored", name=name, value=value)
    return default


def _done() -> None:
    return
