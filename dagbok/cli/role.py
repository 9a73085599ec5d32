"""What the roles of production do: until a signal, then hand back what they have and end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import structlog

from dagbok import logs
from dagbok.agents.queue import KINDS
from dagbok.agents.workers.definitions import Registry
from dagbok.cli.cluster import Cluster, HealthOptions, Stores, with_kafka
from dagbok.cli.exits import Exit
from dagbok.cli.interrupts import Interrupted, LeavableThreads, end_after, interruptible, leave_threads
from dagbok.cli.module_file import load_all
from dagbok.cli.options import Output, settle
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput
from dagbok.events.run.values import AttemptKind
from dagbok.settings import Settings

if TYPE_CHECKING:
    from dagbok.agents.kafka.health import Health
    from dagbok.agents.kafka.roles import Site

logger = structlog.get_logger(__name__)

STOP_WITHIN_S: Final = 28.0
"""Kubernetes kills 30 s behind SIGTERM."""

Play = Callable[["Site", "Health"], Coroutine[object, object, None]]


@dataclass(frozen=True)
class Options:
    """What every role is told."""

    cluster: Cluster | None
    stores: Stores | None
    health: HealthOptions | None
    output: Output | None

    def settle(self) -> Settings:
        """Options first, then variables, then defaults."""
        return (self.health or HealthOptions()).over((self.stores or Stores()).over(settle(None, self.output)[0]))

    @property
    def as_json(self) -> bool:
        """Whether what is logged is to be JSON in any case."""
        return self.output is not None and self.output.json


def serve_scheduler(options: Options) -> int:
    """Decide."""
    settings = _begin("scheduler", options)
    _require_artifacts(settings)
    roles = with_kafka("dagbok.agents.kafka.roles")
    return _serve(
        "scheduler", options, settings, lambda site, health: roles.play_scheduler(site, health, settings.tenant_limit)
    )


def serve_worker(imports: Sequence[str], pools: Sequence[str] | None, options: Options) -> int:
    """Work, and verify where the modules declare verifiers."""
    return _serve_pools("worker", imports, pools, KINDS, options)


def serve_verifier(imports: Sequence[str], pools: Sequence[str] | None, options: Options) -> int:
    """Verify."""
    return _serve_pools("verifier", imports, pools, ("verify",), options)


def serve_projector(options: Options) -> int:
    """Write the tables."""
    settings = _begin("projector", options)
    database = settings.database
    if not database:
        advice = "give --database postgresql://user:password@host:5432/database, or set DAGBOK_DATABASE"
        raise InvalidInput("no database is named", code=Code.USAGE, advice=advice)
    roles = with_kafka("dagbok.agents.kafka.roles")
    return _serve("projector", options, settings, lambda site, health: roles.play_projector(site, health, database))


def _serve_pools(
    role: str, imports: Sequence[str], pools: Sequence[str] | None, kinds: Sequence[AttemptKind], options: Options
) -> int:
    settings = _begin(role, options)
    _require_artifacts(settings)
    registry = Registry()
    for module in load_all(imports):
        registry.add_from(module)
    declared = {"work": registry.workers, "verify": registry.verifiers}
    served = tuple(kind for kind in kinds if declared[kind])
    if not served:
        what = " and ".join({"work": "workers", "verify": "verifiers"}[kind] for kind in kinds)
        raise InvalidInput(f"no {what} to serve", code=Code.USAGE, advice="name a module that declares some: --import")
    named = tuple(dict.fromkeys(pools or ("default",)))
    roles = with_kafka("dagbok.agents.kafka.roles")
    return _serve(
        role, options, settings, lambda site, health: roles.play_worker(site, health, registry, named, served)
    )


def _begin(role: str, options: Options) -> Settings:
    settings = options.settle()
    format = "json" if options.as_json and settings.log_format == "auto" else settings.log_format
    logs.configure(settings.log_level or "info", format, pid=os.getpid(), role=role)
    return settings


def _require_artifacts(settings: Settings) -> None:
    if not settings.artifacts:
        advice = "give --artifacts, or set DAGBOK_ARTIFACTS: s3://bucket/prefix, or a folder that all processes reach"
        raise InvalidInput("no place for artifacts is named", code=Code.USAGE, advice=advice)


def _serve(role: str, options: Options, settings: Settings, play: Play) -> int:
    """Until a signal. Raises what ends the role otherwise."""
    site = with_kafka("dagbok.agents.kafka.roles").Site(
        (options.cluster or Cluster()).settings(), settings.artifacts or "", settings.session_s
    )
    health: Health = with_kafka("dagbok.agents.kafka.health").Health(role, stall_s=settings.stall_s)
    # What is dead may also be what does not let go.
    health.on_failure = lambda: end_after(STOP_WITHIN_S, Exit.INTERNAL)
    try:
        asyncio.run(interruptible(_play(play(site, health), health, settings), STOP_WITHIN_S))
    except Interrupted as interrupted:
        logger.info("role.stopped", signal=str(interrupted))
        leave_threads(0)
    return 0


async def _play(playing: Coroutine[object, object, None], health: Health, settings: Settings) -> None:
    asyncio.get_running_loop().set_default_executor(LeavableThreads())
    if settings.health_port is None:
        await playing
        return
    serving = with_kafka("dagbok.agents.kafka.health_http").serving
    try:
        async with serving(health, settings.health_host, settings.health_port):
            await playing
    finally:
        playing.close()  # nothing where it has begun
