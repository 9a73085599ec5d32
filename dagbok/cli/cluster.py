"""The options that say which Kafka cluster is meant, and where the processes on it keep the rest."""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Annotated

from cyclopts import Group, Parameter
from cyclopts.validators import Number

from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput
from dagbok.events.extras import install
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.settings import Settings

CLUSTER = Group("Cluster", sort_key=10)
EXTRA = ("aiokafka", "faust", "mode", "prometheus_client")


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


@Parameter(name="*")
@dataclass(frozen=True)
class Stores:
    """Where the processes of a log on Kafka keep what is not in it."""

    artifacts: Annotated[str | None, Parameter(group=CLUSTER)] = None
    """s3://BUCKET/PREFIX, or a folder that all processes reach. Else $DAGBOK_ARTIFACTS."""
    database: Annotated[str | None, Parameter(group=CLUSTER)] = None
    """postgresql://USER:PASSWORD@HOST:PORT/DATABASE. Else $DAGBOK_DATABASE, where a password is not seen by others."""

    def over(self, settings: Settings) -> Settings:
        """The settings, with what the options say in its place."""
        return replace(
            settings, artifacts=self.artifacts or settings.artifacts, database=self.database or settings.database
        )


@Parameter(name="*")
@dataclass(frozen=True)
class HealthOptions:
    """Where a process serves /health/live, /health/ready and /metrics."""

    health_port: Annotated[int | None, Parameter(group=CLUSTER, validator=Number(gte=0, lt=65536))] = None
    """Serve health and metrics there (0: a free port, which is logged). Else $DAGBOK_HEALTH_PORT, else not at all."""
    health_host: Annotated[str | None, Parameter(group=CLUSTER)] = None
    """The address to listen on. Else $DAGBOK_HEALTH_HOST, else 127.0.0.1: 0.0.0.0 for probes from outside."""

    def over(self, settings: Settings) -> Settings:
        """The settings, with what the options say in its place."""
        return replace(
            settings,
            health_port=settings.health_port if self.health_port is None else self.health_port,
            health_host=self.health_host or settings.health_host,
        )


def with_kafka(module: str) -> ModuleType:
    """A module that needs what the extra `kafka` installs. Raises `InvalidInput`, which says so, without it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in EXTRA:
            raise
        raise InvalidInput(f"{missing} is not installed", code=Code.USAGE, advice=install("kafka")) from error
