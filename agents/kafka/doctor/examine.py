"""All checks of a deployment on Kafka, one after the other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from importlib.metadata import version
from typing import Final

from dagbok.agents.doctor.finding import Finding
from dagbok.agents.kafka.doctor.broker_clock import clock
from dagbok.agents.kafka.doctor.declared_topics import topics
from dagbok.agents.kafka.doctor.lanes import served
from dagbok.agents.kafka.doctor.log_state import partitions, still
from dagbok.agents.kafka.doctor.schedulers import scheduler
from dagbok.agents.kafka.doctor.site import Site
from dagbok.agents.kafka.doctor.written_tables import projector
from dagbok.agents.kafka.offsets import Offsets
from dagbok.events.errors import DagbokError
from dagbok.events.log.kafka import KafkaLog
from dagbok.events.log.kafka_errors import FAILURES, explain
from dagbok.events.log.kafka_settings import KafkaSettings

PROGRAMS: Final = ("dagbok", "aiokafka", "faust-streaming")

Check = Callable[[Site], Awaitable[Sequence[Finding]]]

CHECKS: Final[Sequence[tuple[str, Check]]] = (
    ("topics", topics),
    ("clock", clock),
    ("partitions", partitions),
    ("scheduler", scheduler),
    ("pools", served),
    ("projector", projector),
    ("standstill", still),
)
"""In this order: what one finds, such as the broker's time, those behind it use."""


async def examine(
    settings: KafkaSettings, pools: Sequence[str], database: str | None, artifacts: str | None
) -> Sequence[Finding]:
    """All checks, the broker first: without one there are no others. `pools`: to look at, beside those that open
    attempts are in; `database`: of the tables, if there are any; `artifacts`: their place, where snapshots are too."""
    versions = Finding("versions", "ok", ", ".join(f"{name} {version(name)}" for name in PROGRAMS))
    try:
        log = await KafkaLog.open(settings)
    except DagbokError as error:
        return [versions, Finding("broker", "failed", error.message, error.advice)]
    offsets = Offsets(settings)
    try:
        broker = Finding(
            "broker", "ok", f"{settings.bootstrap_servers} answers", numbers={"partitions": log.partitions}
        )
        site = Site(settings, log, offsets, pools, database, artifacts)
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
