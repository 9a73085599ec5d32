"""`dagbok topics` on a real broker: what it makes is what the log needs, and what it finds is said."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest

from dagbok.cli import main
from dagbok.events.log.kafka import KafkaLog
from dagbok.events.log.kafka_admin import administrator
from dagbok.events.log.kafka_settings import KafkaSettings
from tests.servers.kafka_session import session_kafka
from tests.servers.kafka_topics import fresh_prefix, settings_of

LOG_TOPICS = ("commands", "events", "work.default", "review.default", "replies", "snapshots")


class Called:
    """Calls `dagbok topics` for topics of its own."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.prefix = fresh_prefix()
        self._capsys = capsys

    @property
    def settings(self) -> KafkaSettings:
        return settings_of(self.prefix)

    def __call__(self, *arguments: str) -> tuple[int, Any, str]:
        """Exit status, JSON of standard output, and the last line of standard error."""
        session_kafka()
        self._capsys.readouterr()
        place = ("--kafka", self.settings.bootstrap_servers, "--prefix", self.prefix, "--json")
        status = main(["topics", *arguments, *place])
        said = self._capsys.readouterr()
        return status, json.loads(said.out) if said.out else None, said.err.strip().rpartition("\n")[2]


@pytest.fixture
def topics(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Called:
    for name in ("BOOTSTRAP_SERVERS", "PREFIX"):
        monkeypatch.delenv(f"DAGBOK_KAFKA_{name}", raising=False)
    return Called(capsys)


def test_what_it_creates_it_finds_right_and_a_log_opens_on_it(topics: Called) -> None:
    status, told, _ = topics("create", "--partitions", "2")
    assert (status, told["there"]) == (0, [])
    assert told["created"] == [topics.prefix + name for name in LOG_TOPICS]

    assert topics("check", "--partitions", "2")[:2] == (0, [])

    async def opened() -> int:
        log = await KafkaLog.open(topics.settings)
        await log.close()
        return log.partitions

    assert asyncio.run(opened()) == 2


def test_created_again_nothing_changes_and_a_further_pool_is_added(topics: Called) -> None:
    topics("create", "--partitions", "1")

    _, told, _ = topics("create", "--partitions", "1", "--pool", "default", "--pool", "gpu")

    assert told["created"] == [topics.prefix + "work.gpu", topics.prefix + "review.gpu"]
    assert len(told["there"]) == len(LOG_TOPICS)


def test_another_number_of_partitions_is_refused_before_anything_is_made(topics: Called) -> None:
    topics("create", "--partitions", "2")

    status, told, error = topics("create", "--partitions", "3", "--pool", "gpu")

    assert (status, told) == (2, None)
    assert json.loads(error)["error"]["code"] == "usage"
    assert "has 2 partitions, not 3" in error
    assert "another prefix" in error
    _, found, _ = topics("check", "--partitions", "2", "--pool", "gpu")
    assert {finding["topic"] for finding in found} == {topics.prefix + "work.gpu", topics.prefix + "review.gpu"}


def test_what_differs_is_found(topics: Called) -> None:
    async def make_wrong() -> None:
        async with administrator(topics.settings) as admin:
            wrong = {"retention.ms": "1000", "max.message.bytes": "1000"}
            await admin.create(topics.prefix + "events", 3, 1, wrong)
            roomy = {"max.message.bytes": str(2**30), "message.timestamp.type": "LogAppendTime", "retention.ms": "-1"}
            await admin.create(topics.prefix + "commands", 2, 1, roomy)

    session_kafka()
    asyncio.run(make_wrong())

    status, found, _ = topics("check", "--partitions", "2")

    assert status == 1
    of_events = {finding["what"]: finding["found"] for finding in found if finding["topic"].endswith("events")}
    assert of_events.items() >= {
        ("partitions", "3"),
        ("retention.ms", "1000"),
        ("max.message.bytes", "1000"),
        ("message.timestamp.type", "CreateTime"),
    }
    assert not [finding for finding in found if finding["topic"].endswith("commands")]
    missing = {finding["topic"] for finding in found if finding["what"] == "topic"}
    assert missing == {topics.prefix + name for name in LOG_TOPICS[2:]}


@pytest.mark.parametrize("option", [("--pool", "a/b"), ("--pool", "")])
def test_a_name_that_kafka_does_not_take_is_wrong_usage(topics: Called, option: tuple[str, str]) -> None:
    status, _, error = topics("create", *option)
    assert status == 2
    assert "Kafka takes no others in" in error


def test_no_broker_is_an_error_of_the_log_with_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topics", "check", "--kafka", "127.0.0.1:1"]) == 6
    last = capsys.readouterr().err.strip().rpartition("\n")[2]
    assert last.startswith("DAGBOK-LOG-UNREACHABLE: ")
    assert "look whether the brokers run" in last


def test_without_aiokafka_the_command_says_what_to_install() -> None:
    without = (
        "import sys; sys.modules['aiokafka'] = None; from dagbok.cli import main; sys.exit(main(['topics', 'check']))"
    )
    done = subprocess.run([sys.executable, "-c", without], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "aiokafka is not installed — in a clone of dagbok: pip install '.[kafka]'" in done.stderr
