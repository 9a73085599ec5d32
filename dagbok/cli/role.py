"""What the roles of production do: until a signal, then hand back what they have and end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Final

import structlog

from dagbok import logs
from dagbok.agents.queue import KINDS
from dagbok.agents.workers.definitions import Registry
from dagbok.cli.cluster import Cluster, Stores, with_kafka
from dagbok.cli.interrupts import Interrupted, interruptible, leave_threads
from dagbok.cli.module_file import load_all
from dagbok.cli.options import Output, settle
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput
from dagbok.events.run.values import AttemptKind
from dagbok.settings import Settings

if TYPE_CHECKING:
    from types import ModuleType

    from dagbok.agents.kafka.roles import Site

logger = structlog.get_logger(__name__)

STOP_WITHIN_S: Final = 28.0
"""Kubernetes kills 30 s behind SIGTERM."""

Play = Callable[["ModuleType", "Site", Settings], Coroutine[object, object, None]]


def serve_scheduler(cluster: Cluster | None, stores: Stores | None, output: Output | None) -> int:
    """Decide."""
    return _serve(
        "scheduler",
        lambda roles, site, settings: roles.play_scheduler(site, settings.tenant_limit),
        cluster,
        stores,
        output,
    )


def serve_worker(
    imports: Sequence[str],
    pools: Sequence[str] | None,
    cluster: Cluster | None,
    stores: Stores | None,
    output: Output | None,
) -> int:
    """Work, and verify where the modules declare verifiers."""
    registry = _registry(imports)
    kinds = _declared(registry)
    if not kinds:
        raise _nothing("workers and verifiers")
    return _serve(
        "worker",
        lambda roles, site, _: roles.play_worker(site, registry, _pools(pools), kinds),
        cluster,
        stores,
        output,
    )


def serve_verifier(
    imports: Sequence[str],
    pools: Sequence[str] | None,
    cluster: Cluster | None,
    stores: Stores | None,
    output: Output | None,
) -> int:
    """Verify."""
    registry = _registry(imports)
    if "verify" not in _declared(registry):
        raise _nothing("verifiers")
    return _serve(
        "verifier",
        lambda roles, site, _: roles.play_worker(site, registry, _pools(pools), ("verify",)),
        cluster,
        stores,
        output,
    )


def serve_projector(cluster: Cluster | None, stores: Stores | None, output: Output | None) -> int:
    """Write the tables."""

    def play(roles: ModuleType, site: Site, settings: Settings) -> Coroutine[object, object, None]:
        if not settings.database:
            advice = "--database postgresql://user:password@host:5432/database, or DAGBOK_DATABASE"
            raise InvalidInput("no database is named", code=Code.USAGE, advice=advice)
        found: Coroutine[object, object, None] = roles.play_projector(site, settings.database)
        return found

    return _serve("projector", play, cluster, stores, output, artifacts=False)


def _serve(
    role: str,
    play: Play,
    cluster: Cluster | None,
    stores: Stores | None,
    output: Output | None,
    *,
    artifacts: bool = True,
) -> int:
    """Until a signal. Raises what ends the role otherwise."""
    found, how = settle(None, output)
    settings = (stores or Stores()).over(found)
    logs.configure(
        settings.log_level or "info",
        "json" if how.json and settings.log_format == "auto" else settings.log_format,
        pid=os.getpid(),
        role=role,
    )
    if artifacts and not settings.artifacts:
        advice = "--artifacts, or DAGBOK_ARTIFACTS: s3://bucket/prefix, or a folder that all processes reach"
        raise InvalidInput("no place for artifacts is named", code=Code.USAGE, advice=advice)
    roles = with_kafka("dagbok.agents.kafka.roles")
    site = roles.Site((cluster or Cluster()).settings(), settings.artifacts or "", settings.session_s)
    try:
        asyncio.run(interruptible(play(roles, site, settings), STOP_WITHIN_S))
    except Interrupted as interrupted:
        logger.info("role.stopped", signal=str(interrupted))
        leave_threads(0)
    return 0


def _registry(imports: Sequence[str]) -> Registry:
    registry = Registry()
    for module in load_all(imports):
        registry.add_from(module)
    return registry


def _declared(registry: Registry) -> tuple[AttemptKind, ...]:
    there = {"work": registry.workers, "verify": registry.verifiers}
    return tuple(kind for kind in KINDS if there[kind])


def _nothing(what: str) -> InvalidInput:
    return InvalidInput(f"no {what} to serve", code=Code.USAGE, advice="name a module or file that has some: --import")


def _pools(pools: Sequence[str] | None) -> Sequence[str]:
    return list(dict.fromkeys(pools or ["default"]))
