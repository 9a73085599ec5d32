"""The topics of a pool: who serves it makes them, where the broker allows that."""

from __future__ import annotations

from collections.abc import Iterable

import structlog

from dagbok.agents.kafka.pool_names import check_pool, pool_topics
from dagbok.events.codes import Code
from dagbok.events.errors import StorageFailed
from dagbok.events.log.kafka_admin import Described, administrator
from dagbok.events.log.kafka_errors import FAILURES, explain, topics_command
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.log.kafka_topics import create, declared
from dagbok.events.log.port import COMMANDS

logger = structlog.get_logger(__name__)


async def ensure_lane_topics(settings: KafkaSettings, pools: Iterable[str]) -> None:
    """Create what is missing, with as many partitions and copies as `commands` has. Raises `StorageFailed`, which says
    what to run, when `commands` is not there or the broker does not allow it, `LogError` when none answers, and
    `InvalidInput` (`usage`), before anything is made, for a pool that can never have topics."""
    commands, pools = settings.prefix + COMMANDS, list(pools)
    for pool in pools:
        check_pool(settings.prefix, pool, Code.USAGE)
    wanted = {topic for pool in pools for topic in pool_topics(settings.prefix, pool)}
    how = [f"--pool {pool}" for pool in pools]
    try:
        async with administrator(settings) as admin:
            there = await admin.topics([commands, *wanted])
    except FAILURES as error:
        raise explain(error, settings.bootstrap_servers) from error
    model = there.get(commands)
    if model is None:
        told = f"the cluster at {settings.bootstrap_servers} has no topic {commands}"
        raise StorageFailed(told, advice=f"create the topics: {topics_command(settings, 'create', *how)}")
    missing = wanted - there.keys()
    if not missing:
        return
    topics = declared(settings.prefix, model.partitions, model.replication, pools)
    try:
        made = await create(settings, [topic for topic in topics if topic.name in missing], model.replication)
    except StorageFailed as error:
        told = f"the topics {', '.join(sorted(missing))} are missing, and cannot be made from here: {error.message}"
        raise StorageFailed(told, advice=f"run as who may: {how_to_create(settings, model, pools)}") from error
    logger.info("topics.created", topics=made)


def how_to_create(settings: KafkaSettings, model: Described, pools: Iterable[str]) -> str:
    """The command that makes the topics of pools, as `commands` is, to be given here."""
    counts = f"--partitions {model.partitions} --replication {model.replication}"
    return topics_command(settings, "create", counts, *[f"--pool {pool}" for pool in pools])
