"""The options that say which Kafka cluster is meant."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Group, Parameter

from dagbok.events.log.kafka_settings import KafkaSettings

CLUSTER = Group("Cluster", sort_key=10)


@Parameter(name="*")
@dataclass(frozen=True)
class Cluster:
    """Which topics of which cluster. Credentials are in $DAGBOK_KAFKA_*."""

    kafka: Annotated[str | None, Parameter(group=CLUSTER)] = None
    """Brokers, HOST:PORT with commas between. Else $DAGBOK_KAFKA_BOOTSTRAP_SERVERS, else "localhost:9092"."""
    prefix: Annotated[str | None, Parameter(group=CLUSTER)] = None
    """What the names of all topics start with. Else $DAGBOK_KAFKA_PREFIX, else "dagbok."."""

    def settings(self) -> KafkaSettings:
        """Options first, then variables, then defaults. Raises `InvalidInput`."""
        given = {"bootstrap_servers": self.kafka, "prefix": self.prefix}
        return KafkaSettings.from_environment(os.environ, **{name: value for name, value in given.items() if value})
