"""The topics that dagbok needs (`docs/design/architecture.md`, 3.1): declared, created, compared with what is there."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence, Set
from typing import Final

import msgspec

from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput
from dagbok.events.log.kafka_admin import Admin, Described, administrator
from dagbok.events.log.kafka_errors import FAILURES, explain
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.log.kafka_sizes import MESSAGE_BYTES
from dagbok.events.log.port import COMMANDS, EVENTS

MINUTE_MS: Final = 60 * 1000
DAY_MS: Final = 24 * 60 * MINUTE_MS
REPLIES_MS: Final = 10 * MINUTE_MS
DISPATCHES_MS: Final = 7 * DAY_MS
FOR_EVER: Final = "-1"
SIZE: Final = "max.message.bytes"
AT_LEAST: Final = (SIZE, "min.insync.replicas")

VISIBLE_POLL_S: Final = 0.02

PARTITIONS: Final = 12
POOLS: Final = ("default",)

MIGRATE: Final = (
    "a stream's partition follows from the count, so it cannot change: create topics under another prefix"
    " (DAGBOK_KAFKA_PREFIX), start new runs there, and let the old ones end where they are"
)


class Topic(msgspec.Struct, frozen=True):
    """A topic as it has to be. `configs`: the settings that matter; all others are the cluster's affair."""

    name: str
    partitions: int
    configs: Mapping[str, str]


class Finding(msgspec.Struct, frozen=True):
    """What is wrong with a topic: `what` it is about, what was `found` and what is `wanted`."""

    topic: str
    what: str
    found: str
    wanted: str


def declared(
    prefix: str, partitions: int = PARTITIONS, replication: int = 1, pools: Sequence[str] = POOLS
) -> tuple[Topic, ...]:
    """All topics below `prefix`: those of the log, and of each of the `pools`.

    With a `replication` of 3 or more, an acknowledged record is on two brokers at least.
    """
    safe = {"min.insync.replicas": "2" if replication > 2 else "1", "unclean.leader.election.enable": "false"}
    common = {"message.timestamp.type": "LogAppendTime", SIZE: str(MESSAGE_BYTES)}
    kept = common | safe | {"cleanup.policy": "delete", "retention.ms": FOR_EVER, "retention.bytes": FOR_EVER}
    passing = common | {"cleanup.policy": "delete"}
    dispatches = passing | {"retention.ms": str(DISPATCHES_MS)}
    replies = passing | {"retention.ms": str(REPLIES_MS), "segment.ms": str(REPLIES_MS)}
    found = [Topic(prefix + name, partitions, kept) for name in (COMMANDS, EVENTS)]
    found += [Topic(f"{prefix}{kind}.{pool}", partitions, dispatches) for pool in pools for kind in ("work", "review")]
    found.append(Topic(prefix + "replies", partitions, replies))
    found.append(Topic(prefix + "snapshots", partitions, common | safe | {"cleanup.policy": "compact"}))
    return tuple(found)


async def create(settings: KafkaSettings, topics: Sequence[Topic], replication: int = 1) -> tuple[str, ...]:
    """Create what is missing, and return the names. What is there stays as it is (`check` compares it).

    Raises `InvalidInput` (`usage`), before anything is created, when a topic has another number of partitions. Raises
    `LogError` and `StorageFailed` as the log does.
    """
    try:
        async with administrator(settings) as admin:
            there = await admin.topics([topic.name for topic in topics])
            for topic in topics:
                _refuse_other_count(topic, there.get(topic.name))
            missing = [topic for topic in topics if topic.name not in there]
            made = tuple([topic.name for topic in missing if await _create(admin, topic, replication)])
            async with asyncio.timeout(2 * settings.request_timeout_s):
                await _await_visible(admin, {topic.name for topic in missing})
            return made
    except FAILURES as error:
        raise explain(error, settings.bootstrap_servers) from error


async def check(settings: KafkaSettings, topics: Sequence[Topic]) -> tuple[Finding, ...]:
    """What differs from the declaration; nothing when all is right. Raises `LogError` and `StorageFailed` as the log
    does."""
    try:
        async with administrator(settings) as admin:
            there = await admin.topics([topic.name for topic in topics])
            configs = await admin.configs([topic.name for topic in topics if topic.name in there])
    except FAILURES as error:
        raise explain(error, settings.bootstrap_servers) from error
    findings: list[Finding] = []
    for topic in topics:
        found = there.get(topic.name)
        if found is None:
            findings.append(Finding(topic.name, "topic", "missing", "there"))
        else:
            findings += _compare(topic, found, configs[topic.name])
    return tuple(findings)


async def _create(admin: Admin, topic: Topic, replication: int) -> bool:
    return await admin.create(topic.name, topic.partitions, replication, topic.configs)


async def _await_visible(admin: Admin, names: Set[str]) -> None:
    """The controller has made them; the brokers hear of it later."""
    while not names <= (await admin.topics(list(names))).keys():  # noqa: ASYNC110 – only the broker knows
        await asyncio.sleep(VISIBLE_POLL_S)


def _refuse_other_count(topic: Topic, found: Described | None) -> None:
    if found is not None and found.partitions != topic.partitions:
        told = f"{topic.name} has {found.partitions} partitions, not {topic.partitions}"
        raise InvalidInput(told, code=Code.USAGE, advice=MIGRATE)


def _compare(topic: Topic, found: Described, configs: Mapping[str, str]) -> list[Finding]:
    findings = []
    if found.partitions != topic.partitions:
        findings.append(Finding(topic.name, "partitions", str(found.partitions), str(topic.partitions)))
    for name, wanted in topic.configs.items():
        value = configs.get(name, "unknown")
        if not _fits(name, value, wanted):
            findings.append(Finding(topic.name, name, value, f"at least {wanted}" if name in AT_LEAST else wanted))
    return findings


def _fits(name: str, value: str, wanted: str) -> bool:
    if name in AT_LEAST and value.isdecimal():
        return int(value) >= int(wanted)
    return value == wanted
