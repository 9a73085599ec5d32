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
from dagbok.agents.kafka.lane_topics import ensure_lane_topics
from dagbok.agents.kafka.opening import opened, opened_tables
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


async def play_scheduler(site: Site, tenant_limit: TenantLimit | None = None) -> None:
    """Decide until cancelled, then let others go on. Raises the error of the first part that fails."""
    process = await _open_process(site, Registry())
    try:
        process.schedule(tenant_limit=tenant_limit)
        logger.info("scheduler.serving", process=process.process, partitions=process.log.partitions)
        raise await asyncio.shield(process.failure)
    finally:
        logger.info("scheduler.stopping")
        await process.close()


async def play_worker(site: Site, registry: Registry, pools: Sequence[str], kinds: Sequence[AttemptKind]) -> None:
    """Serve attempts of these kinds in pools until cancelled, then hand back what runs. Makes the topics of the pools
    when they are missing. Raises the error of the first part that fails."""
    await opened("broker", lambda: ensure_lane_topics(site.kafka, pools))
    process = await _open_process(site, registry)
    try:
        process.work(pools, kinds)
        logger.info("worker.serving", process=process.process, pools=list(pools), kinds=list(kinds))
        raise await asyncio.shield(process.failure)
    finally:
        logger.info("worker.stopping")
        await process.close()


async def play_projector(site: Site, database: str) -> None:
    """Write the tables until cancelled; a batch that has begun is finished. Raises the error of the first part that
    fails."""
    log = await opened("broker", lambda: KafkaLog.open(site.kafka))
    try:
        tables = await opened_tables(database)
        try:
            await _project(ProjectorService(site.kafka, log, tables, session_s=site.session_s))
        finally:
            tables.close()
    finally:
        await log.close()


async def _project(projector: ProjectorService) -> None:
    services = Services(asyncio.get_running_loop().create_future())
    services.serve(projector.run())
    try:
        logger.info("projector.serving")
        raise await asyncio.shield(services.failure)
    finally:
        logger.info("projector.stopping")
        await services.end()


async def _open_process(site: Site, registry: Registry) -> KafkaProcess:
    return await opened(
        "broker", lambda: KafkaProcess.open(site.kafka, site.artifacts, registry, session_s=site.session_s)
    )
