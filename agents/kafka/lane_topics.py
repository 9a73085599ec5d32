"""The topics of a pool: who serves it makes them, where the broker allows that."""

from __future__ import annotations

from collections.abc import Iterable

import structlog

from dagbok.agents.kafka.names import lane_topic
from dagbok.agents.queue.port import KINDS, lane_of
from dagbok.events.errors import StorageFailed
from dagbok.events.log.kafka_admin import administrator
from dagbok.events.log.kafka_errors import FAILURES, explain, topics_command
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.log.kafka_topics import create, declared
from dagbok.events.log.port import COMMANDS

logger = structlog.get_logger(__name__)


async def ensure_lane_topics(settings: KafkaSettings, pools: Iterable[str]) -> None:
    """Create what is missing, with as many partitions and copies as `commands` has. Raises `StorageFailed`, which says
    what to run, when `commands` is not there or the broker does not allow it, and `LogError` when none answers."""
    commands, pools = settings.prefix + COMMANDS, list(pools)
    wanted = {lane_topic(settings.prefix, lane_of(kind, pool)) for pool in pools for kind in KINDS}
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
        counts = f"--partitions {model.partitions} --replication {model.replication}"
        command = topics_command(settings, "create", counts, *how)
        raise StorageFailed(told, advice=f"run as who may: {command}") from error
    logger.info("topics.created", topics=made)
