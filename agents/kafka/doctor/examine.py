"""All checks of a deployment on Kafka, one after the other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from importlib.metadata import version
from typing import Final

from dagbok.agents.doctor.finding import Commands, Finding, plain
from dagbok.agents.kafka.doctor.broker_clock import clock
from dagbok.agents.kafka.doctor.declared_topics import topics
from dagbok.agents.kafka.doctor.lanes import served
from dagbok.agents.kafka.doctor.log_state import partitions, still
from dagbok.agents.kafka.doctor.pools import pools_of_tasks
from dagbok.agents.kafka.doctor.schedulers import scheduler
from dagbok.agents.kafka.doctor.site import Site
from dagbok.agents.kafka.doctor.written_tables import projector
from dagbok.agents.kafka.offsets import Offsets
from dagbok.events.errors import DagbokError
from dagbok.events.log.kafka import KafkaLog
from dagbok.events.log.kafka_errors import FAILURES, explain
from dagbok.events.log.kafka_settings import KafkaSettings

PROGRAMS: Final = ("dagbok", "aiokafka", "faust-streaming")

GROUPS_S: Final = 15.0
"""A fresh broker has the groups that are asked for after a few seconds."""

Check = Callable[[Site], Awaitable[Sequence[Finding]]]

CHECKS: Final[Sequence[tuple[str, Check]]] = (
    ("topics", topics),
    ("clock", clock),
    ("partitions", partitions),
    ("scheduler", scheduler),
    ("pool topics", pools_of_tasks),
    ("pools", served),
    ("projector", projector),
    ("standstill", still),
)
"""In this order: what one finds, such as the broker's time, those behind it use."""


async def examine(
    settings: KafkaSettings,
    pools: Sequence[str],
    database: str | None,
    artifacts: str | None,
    command: Commands = plain,
) -> Sequence[Finding]:
    """All checks, the broker first: without one there are no others. `pools`: to look at, beside those that open
    tasks are in; `database`: of the tables, if there are any; `artifacts`: their place, where snapshots are too;
    `command`: how commands are advised."""
    versions = Finding("versions", "ok", ", ".join(f"{name} {version(name)}" for name in PROGRAMS))
    try:
        log = await KafkaLog.open(settings)
    except DagbokError as error:
        return [versions, Finding("broker", "failed", error.message, error.advice)]
    offsets = Offsets(settings, groups_s=GROUPS_S)
    try:
        broker = Finding(
            "broker", "ok", f"{settings.bootstrap_servers} answers", numbers={"partitions": log.partitions}
        )
        site = Site(settings, log, offsets, pools, database, artifacts, command)
        found = [versions, broker]
        for name, check in CHECKS:
            found += await _surely(name, check, site)
        return found
    finally:
        await offsets.close()
        await log.close()


async def _surely(name: str, check: Check, site: Site) -> Sequence[Finding]:
    try:
        return await check(site)
    except (*FAILURES, DagbokError) as error:
        told = explain(error, site.settings.bootstrap_servers)
        return [Finding(name, "failed", told.message, told.advice)]
