"""What `dagbok topics` does."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from dagbok.agents.kafka.pool_names import check_pool
from dagbok.cli import say
from dagbok.cli.cluster import Cluster, with_kafka
from dagbok.cli.exits import Exit
from dagbok.cli.options import Output, settle
from dagbok.cli.quiet import quiet_logs
from dagbok.cli.text import columns, plural
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput
from dagbok.events.log.kafka_settings import KafkaSettings

if TYPE_CHECKING:
    from types import ModuleType

PREFIX = re.compile(r"[A-Za-z0-9._-]{1,150}")
"""What Kafka takes in names of topics, with room for what stands behind it."""


def create_topics(
    partitions: int, replication: int, pools: Sequence[str] | None, cluster: Cluster, output: Output | None
) -> int:
    """Create what is missing and say what that was."""
    settings, how = _settled(cluster, output)
    kafka = _kafka_topics()
    topics = kafka.declared(settings.prefix, partitions, replication, _pools(settings.prefix, pools, kafka))
    made = asyncio.run(kafka.create(settings, topics, replication))
    if how.json:
        say.out_json({"created": list(made), "there": [topic.name for topic in topics if topic.name not in made]})
        return Exit.SUCCEEDED
    for name in made:
        say.out(name)
    say.note(f"{plural(len(made), 'topic')} created, {len(topics) - len(made)} there already")
    return Exit.SUCCEEDED


def check_topics(
    partitions: int, replication: int, pools: Sequence[str] | None, cluster: Cluster, output: Output | None
) -> int:
    """Say what differs; status 1 when something does."""
    settings, how = _settled(cluster, output)
    kafka = _kafka_topics()
    topics = kafka.declared(settings.prefix, partitions, replication, _pools(settings.prefix, pools, kafka))
    findings = asyncio.run(kafka.check(settings, topics))
    if how.json:
        say.out_json([msgspec.to_builtins(finding) for finding in findings])
    elif findings:
        rows = [[finding.topic, finding.what, finding.found, finding.wanted] for finding in findings]
        for line in columns([["TOPIC", "WHAT", "FOUND", "WANTED"], *rows]):
            say.out(line)
        say.note(_advice({finding.what for finding in findings}, kafka, settings))
    else:
        say.note(f"{plural(len(topics), 'topic')} as they have to be")
    return Exit.FAILED if findings else Exit.SUCCEEDED


def _advice(what: set[str], kafka: ModuleType, settings: KafkaSettings) -> str:
    if "partitions" in what:
        return f"partitions: {kafka.MIGRATE}"
    if what == {"topic"}:
        return f"create them: {with_kafka('dagbok.events.log.kafka_errors').topics_command(settings, 'create')}"
    return "change the settings with the tools of your cluster (kafka-configs), then check again"


def _settled(cluster: Cluster, output: Output | None) -> tuple[KafkaSettings, Output]:
    settings, how = settle(None, output)
    quiet_logs(settings)
    kafka = cluster.settings()
    _check_prefix(kafka.prefix)
    return kafka, how


def _pools(prefix: str, pools: Sequence[str] | None, kafka: ModuleType) -> Sequence[str]:
    found: Sequence[str] = pools or kafka.POOLS
    for pool in found:
        check_pool(prefix, pool, Code.USAGE)
    return found


def _check_prefix(prefix: str) -> None:
    if PREFIX.fullmatch(prefix) is None:
        told = f"prefix {prefix[:140]!r} is not 1 to 150 of the characters A-Z a-z 0-9 . _ -"
        raise InvalidInput(told, code=Code.USAGE, advice="Kafka takes no others in the name of a topic")


def _kafka_topics() -> ModuleType:
    return with_kafka("dagbok.events.log.kafka_topics")
