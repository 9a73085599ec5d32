"""What the log asks a cluster to do with topics, in our types."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import msgspec
from aiokafka.admin import AIOKafkaAdminClient, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaConnectionError, KafkaError, TopicAlreadyExistsError, for_code
from aiokafka.protocol.metadata import MetadataRequest

from dagbok.events.log.kafka_client import Place
from dagbok.events.log.kafka_options import client_options
from dagbok.events.log.kafka_probe import why_not
from dagbok.events.log.kafka_settings import KafkaSettings


class Described(msgspec.Struct, frozen=True):
    """A topic as it is: `replication` is that of its first partition."""

    partitions: int
    replication: int


class Admin:
    """Calls raise what `kafka_errors.FAILURES` has."""

    def __init__(self, client: Any) -> None:  # aiokafka's, without types
        self._client = client

    async def topics(self, names: Sequence[str]) -> Mapping[str, Described]:
        """Those of `names` that are there, every partition with a leader. Asking does not create them."""
        request = MetadataRequest(list(names), allow_auto_topic_creation=False)
        answer = await self._client._send_request(request)  # `describe_topics` creates where brokers may
        found = answer.to_object()["topics"]
        return {topic["topic"]: _described(topic["partitions"]) for topic in found if _is_there(topic)}

    async def names(self) -> Sequence[str]:
        """Of all topics that this client may see."""
        found: Sequence[str] = await self._client.list_topics()
        return found

    async def create(self, name: str, partitions: int, replication: int, configs: Mapping[str, str]) -> bool:
        """Create a topic. False when it is there already."""
        topic = NewTopic(name, partitions, replication, topic_configs=dict(configs))
        answer = await self._client.create_topics([topic])
        for _, code, *message in answer.topic_errors:
            error = cast("type[KafkaError]", for_code(code))
            if error is TopicAlreadyExistsError:
                return False
            if code:
                raise error(message[0] if message else name)
        return True

    async def delete(self, names: Sequence[str]) -> None:
        """Remove topics with everything in them."""
        await self._client.delete_topics(list(names))

    async def configs(self, names: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        """The settings of topics, defaults included, by name of the topic."""
        wanted = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
        answers = await self._client.describe_configs(wanted) if wanted else ()
        return {
            name: {entry[0]: entry[1] for entry in entries}
            for answer in answers
            for _code, _message, _type, name, entries in answer.resources
        }

    async def delete_before(self, place: Place, offset: int) -> None:
        """Remove the records below `offset`, which is not beyond the end."""
        await self._client.delete_records({place: RecordsToDelete(offset)})


@asynccontextmanager
async def administrator(settings: KafkaSettings) -> AsyncIterator[Admin]:
    """An admin client for a few calls."""
    client = AIOKafkaAdminClient(**client_options(settings))
    try:
        try:
            await client.start()
        except KafkaConnectionError as error:
            raise await why_not(settings) or error from error
        yield Admin(client)
    finally:
        await client.close()


def _is_there(topic: Mapping[str, Any]) -> bool:
    return not topic["error_code"] and all(found["leader"] >= 0 for found in topic["partitions"])


def _described(partitions: Sequence[Mapping[str, Any]]) -> Described:
    first = partitions[0] if partitions else {"replicas": ()}
    return Described(len(partitions), len(first["replicas"]))
