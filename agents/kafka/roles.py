"""The roles of production, each from its connection to its end: scheduler, worker, verifier, projector.

Any number of processes play each. None keeps anything that is not in the log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from dagbok.agents.hosting.services import Services
from dagbok.agents.kafka.group import SESSION_S
from dagbok.agents.kafka.health import Health
from dagbok.agents.kafka.lane_topics import ensure_lane_topics
from dagbok.agents.kafka.opening import opened, opened_tables
from dagbok.agents.kafka.parts import Part, ProjectorPart, QueuePart, SchedulerPart
from dagbok.agents.kafka.process import KafkaProcess
from dagbok.agents.kafka.projector import ProjectorService
from dagbok.agents.scheduler.dispatch.tenants import TenantLimit
from dagbok.agents.workers.definitions import Registry
from dagbok.events.log.kafka import KafkaLog
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.run.values import AttemptKind

logger = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Site:
    """Where a role plays: the cluster, the place of the artifacts (`open_artifacts`), and after how many seconds
    without a sign of life another process takes over."""

    kafka: KafkaSettings
    artifacts: str = ""
    session_s: float = SESSION_S


async def play_scheduler(site: Site, health: Health, tenant_limit: TenantLimit | None = None) -> None:
    """Decide until cancelled, then let others go on. Raises the error of the first part that fails."""
    process = await _open_process(site, Registry(), health)
    try:
        scheduler = process.schedule(tenant_limit=tenant_limit, metrics=health.metrics)
        prefix = site.kafka.prefix
        parts: list[Part] = [SchedulerPart(scheduler, prefix), QueuePart(process.queue, prefix, health.role)]
        logger.info("scheduler.serving", process=process.process, partitions=process.log.partitions)
        await _watched(site, health, parts, process.failure)
    finally:
        logger.info("scheduler.stopping")
        await process.close()


async def play_worker(
    site: Site, health: Health, registry: Registry, pools: Sequence[str], kinds: Sequence[AttemptKind]
) -> None:
    """Serve attempts of these kinds in pools until cancelled, then hand back what runs. Makes the topics of the pools
    when they are missing. Raises the error of the first part that fails."""
    await opened("broker", lambda: ensure_lane_topics(site.kafka, pools), health)
    process = await _open_process(site, registry, health)
    try:
        process.work(pools, kinds)
        logger.info("worker.serving", process=process.process, pools=list(pools), kinds=list(kinds))
        part = QueuePart(process.queue, site.kafka.prefix, health.role)
        await _watched(site, health, [part], process.failure)
    finally:
        logger.info("worker.stopping")
        await process.close()


async def play_projector(site: Site, health: Health, database: str) -> None:
    """Write the tables until cancelled; a batch that has begun is finished. Raises the error of the first part that
    fails."""
    log = await opened("broker", lambda: KafkaLog.open(site.kafka), health)
    try:
        tables = await opened_tables(database, health)
        try:
            await _project(site, health, ProjectorService(site.kafka, log, tables, session_s=site.session_s))
        finally:
            await asyncio.to_thread(tables.close)
    finally:
        await log.close()


async def _project(site: Site, health: Health, projector: ProjectorService) -> None:
    services = Services(asyncio.get_running_loop().create_future())
    services.serve(projector.run())
    try:
        logger.info("projector.serving")
        await _watched(site, health, [ProjectorPart(projector, site.kafka.prefix)], services.failure)
    finally:
        logger.info("projector.stopping")
        await services.end()


async def _watched(site: Site, health: Health, parts: Sequence[Part], failure: asyncio.Future[BaseException]) -> None:
    """Until one of them fails, or stands still for too long: then raise its error."""
    watching = Services(failure)
    watching.serve(health.watch(site.kafka, parts))
    try:
        error = await asyncio.shield(failure)
        health.on_failure()
        raise error
    finally:
        await watching.end()


async def _open_process(site: Site, registry: Registry, health: Health) -> KafkaProcess:
    return await opened(
        "broker",
        lambda: KafkaProcess.open(site.kafka, site.artifacts, registry, session_s=site.session_s),
        health,
    )
