"""A Kafka for tests: the one that is named, a container, or Apache Kafka started here (`docs/design/kafka.md`)."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.servers.kafka_broker import Broker
from tests.servers.kafka_jars import java_and_maven
from tests.servers.kafka_ready import await_ready
from tests.servers.ladder import Rung, docker_answers, first_that_applies, named

VARIABLE: Final = "KAFKA_BOOTSTRAP_SERVERS"
ADVICE: Final = (
    f"Set {VARIABLE} to a broker that tests may make topics on, or start a docker engine, or install Java 17 or newer"
    " and Maven (Debian: apt-get install openjdk-17-jdk-headless maven)."
)


@dataclass(frozen=True)
class Kafka:
    """A broker that answers at `bootstrap` (`host:port`, perhaps several). `log_tail`: the last lines of its log."""

    bootstrap: str
    log_tail: Callable[[], str] = lambda: ""


def ping_docker() -> None:
    """Raises, whatever the client library raises, unless an engine answers."""
    import docker  # here: it takes a third of a second and is needed on this rung alone

    client = docker.from_env()
    try:
        client.ping()
    finally:
        client.close()


def rungs(environment: Mapping[str, str], ping: Callable[[], None] = ping_docker) -> list[Rung[Kafka]]:
    """The ways to a broker, the first ones first."""

    def by_name() -> AbstractContextManager[Kafka]:
        return _named(named(environment, VARIABLE))

    def in_container() -> AbstractContextManager[Kafka]:
        docker_answers(ping)
        return _container()

    def by_maven() -> AbstractContextManager[Kafka]:
        java_and_maven()
        return _here()

    return [Rung("environment", by_name), Rung("docker", in_container), Rung("java", by_maven)]


def kafka(environment: Mapping[str, str] = os.environ) -> tuple[str, AbstractContextManager[Kafka]]:
    """The name of the rung that applies, and its broker, not started yet. Raises `NoServer`."""
    return first_that_applies("Kafka", rungs(environment), ADVICE)


@contextmanager
def _named(bootstrap: str) -> Iterator[Kafka]:
    await_ready(bootstrap)
    yield Kafka(bootstrap)


@contextmanager
def _container() -> Iterator[Kafka]:
    from testcontainers.community.kafka import KafkaContainer  # here: its import costs, and needs the docker client

    container = KafkaContainer().with_kraft()
    for name in ("TRANSACTION_STATE_LOG_REPLICATION_FACTOR", "TRANSACTION_STATE_LOG_MIN_ISR"):
        container = container.with_env(f"KAFKA_{name}", "1")
    with container:
        bootstrap = str(container.get_bootstrap_server())
        await_ready(bootstrap)
        yield Kafka(bootstrap)


@contextmanager
def _here() -> Iterator[Kafka]:
    folder = Path(tempfile.mkdtemp(prefix="dagbok-kafka-"))
    broker = Broker(folder)
    try:
        broker.start()
        yield Kafka(broker.bootstrap, broker.log_tail)
    finally:
        broker.stop()
        shutil.rmtree(folder, ignore_errors=True)
