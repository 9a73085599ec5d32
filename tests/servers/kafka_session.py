"""One broker for all tests of a session, started by the first that needs it. Topics keep tests apart: each takes a
prefix of its own."""

from __future__ import annotations

from contextlib import ExitStack

from tests.servers.kafka import Kafka, kafka

_running = ExitStack()
_kafka: list[Kafka] = []


def session_kafka() -> Kafka:
    """The broker of this session. Blocks for some seconds on the first call. Raises `NoServer`, `NotReady`."""
    if not _kafka:
        _, server = kafka()
        _kafka.append(_running.enter_context(server))
    return _kafka[0]


def log_tail() -> str:
    """The last lines of its log; nothing when it does not run, or its log is elsewhere."""
    return _kafka[0].log_tail() if _kafka else ""


def stop_session_kafka() -> None:
    """Stop it. Nothing when it does not run."""
    _kafka.clear()
    _running.close()
