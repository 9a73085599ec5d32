"""`dagbok up`: a host that stays."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

import structlog

from dagbok import logs
from dagbok.cli.interrupts import Interrupted, interruptible, leave_threads
from dagbok.cli.module_file import load_all, pool_of
from dagbok.cli.options import Output, Place, settle
from dagbok.cli.places import no_folder
from dagbok.cli.pools import PoolWorkers, registry_of, shared_definitions
from dagbok.client import Dagbok
from dagbok.settings import Settings

logger = structlog.get_logger(__name__)


def serve(imports: Sequence[str], place: Place | None, output: Output | None) -> int:
    """Until a signal: then hand back what runs. Raises what ends the host."""
    settings, how = settle(place, output)
    no_folder(settings, "dagbok up", "on Kafka: dagbok scheduler, dagbok worker, dagbok projector")
    format = "json" if how.json and settings.log_format == "auto" else settings.log_format
    logs.configure(settings.log_level or "info", format, pid=os.getpid())
    modules = load_all(imports)
    try:
        asyncio.run(interruptible(_serve(settings, modules)))
    except Interrupted as interrupted:
        logger.info("up.stopped", signal=str(interrupted))
        leave_threads(0)
    return 0


async def _serve(settings: Settings, modules: Sequence[ModuleType]) -> None:
    pools = by_pool(modules)
    registries = {
        pool: registry_of(module, [other for other in modules if other is not module]) for pool, module in pools.items()
    }
    definitions = shared_definitions(modules)
    async with Dagbok.embedded(
        settings.data, *definitions, user=settings.user, tenant_limit=settings.tenant_limit
    ) as dagbok:
        host = dagbok.host
        workers = [PoolWorkers(host, registry, pool) for pool, registry in registries.items()]
        try:
            for each in workers:
                each.start()
            logger.info("up.serving", folder=str(settings.data), pools=["default", *pools])
            await host.first(_failure(workers))
        finally:
            logger.info("up.stopping")
            await asyncio.gather(*[each.stop() for each in workers])


def by_pool(modules: Sequence[ModuleType]) -> Mapping[str, ModuleType]:
    """The pool of each file."""
    return {pool_of(Path(module.__file__)): module for module in modules if module.__file__}


async def _failure(workers: Sequence[PoolWorkers]) -> None:
    """Of the first of them that fails; the host watches its own."""
    never = asyncio.Event()
    watching = [asyncio.create_task(each.failed()) for each in workers] or [asyncio.create_task(_wait(never))]
    try:
        done, _ = await asyncio.wait(watching, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in watching:
            task.cancel()


async def _wait(event: asyncio.Event) -> None:
    await event.wait()
