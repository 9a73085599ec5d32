"""A log on the session's broker, with topics of its own."""

from __future__ import annotations

import secrets

from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.log.kafka_topics import create, declared
from dagbok.events.log.port import COMMANDS, EVENTS
from tests.servers.kafka_session import session_kafka


def fresh_prefix() -> str:
    """Nobody else has it."""
    return f"t{secrets.token_hex(6)}."


def settings_of(prefix: str, bootstrap: str | None = None, **more: str) -> KafkaSettings:
    """Settings for topics below `prefix`, on the session's broker unless another one is named."""
    found = {"bootstrap_servers": bootstrap or session_kafka().bootstrap, "prefix": prefix}
    return KafkaSettings.from_environment({}, **(found | more))


async def create_log_topics(settings: KafkaSettings, partitions: int = 2) -> None:
    """`commands` and `events`."""
    wanted = (settings.prefix + COMMANDS, settings.prefix + EVENTS)
    topics = [topic for topic in declared(settings.prefix, partitions) if topic.name in wanted]
    assert await create(settings, topics)
