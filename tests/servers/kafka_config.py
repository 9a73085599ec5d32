"""The configuration of a broker for tests: KRaft in one process, one node, every replication factor 1."""

from __future__ import annotations

import base64
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ONE_NODE: Final = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "auto.create.topics.enable": "false",
    "num.partitions": "1",
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # After kill -9 the controller takes the broker back only when its session has run out.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "log.cleaner.dedupe.buffer.size": "4194304",
}

LOG4J: Final = """\
rootLogger.level = INFO
rootLogger.appenderRef.out.ref = OUT
appender.out.type = Console
appender.out.name = OUT
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %c{1} %m%n
"""


@dataclass(frozen=True)
class Secured:
    """A second listener with SASL over TLS. `scram` and `plain`: passwords by user. `pem`: key and certificate of the
    broker, one behind the other."""

    pem: Path
    scram: Mapping[str, str] = field(default_factory=dict)
    plain: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Ports:
    """Loopback ports. They stay the same when the broker is started again."""

    plain: int
    controller: int
    secured: int


def free_ports() -> Ports:
    """Three that are free now."""
    taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    try:
        return Ports(*(found.getsockname()[1] for found in taken))
    finally:
        for found in taken:
            found.close()


def cluster_id() -> str:
    """16 bytes as 22 characters of URL-safe base64, not starting with "-" (it would be taken for an option)."""
    while (told := base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")).startswith("-"):
        pass
    return told


def properties(ports: Ports, data: Path, secured: Secured | None) -> str:
    """The text of server.properties."""
    told = {
        **ONE_NODE,
        "controller.quorum.voters": f"1@127.0.0.1:{ports.controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{ports.plain},CONTROLLER://127.0.0.1:{ports.controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{ports.plain}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SECURED:SASL_SSL",
        "log.dirs": str(data),
    }
    if secured is not None:
        told["listeners"] += f",SECURED://127.0.0.1:{ports.secured}"
        told["advertised.listeners"] += f",SECURED://127.0.0.1:{ports.secured}"
        told |= _of_secured(secured)
    return "".join(f"{key}={value}\n" for key, value in told.items())


def scram_options(secured: Secured | None) -> list[str]:
    """What `StorageTool format` needs to know the users of SCRAM."""
    users = {} if secured is None else secured.scram
    return [
        part
        for user, password in users.items()
        for part in ("--add-scram", f"SCRAM-SHA-512=[name={user},password={password}]")
    ]


def _of_secured(secured: Secured) -> dict[str, str]:
    users = "".join(f' user_{user}="{password}"' for user, password in secured.plain.items())
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(secured.pem),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "listener.name.secured.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "listener.name.secured.plain.sasl.jaas.config": (
            f"org.apache.kafka.common.security.plain.PlainLoginModule required{users};"
        ),
        "listener.name.secured.scram-sha-512.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
    }
