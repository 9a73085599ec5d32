"""The first commands on a broker that nobody has used: topics, then the look at them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.kafka_roles.role_site import RoleSite
from tests.servers.kafka_broker import Broker


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Broker]:
    """Started for this test."""
    folder = tmp_path / "broker"
    folder.mkdir()
    broker = Broker(folder)
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()


async def test_doctor_right_behind_topics_create_finds_nothing_wrong_and_says_no_more(
    site: RoleSite, fresh: Broker
) -> None:
    site.kafka = msgspec.structs.replace(site.kafka, bootstrap_servers=fresh.bootstrap)
    made = await site.command("topics", "create", "--partitions", "2")
    assert made.status == 0, made.told
    looked = await site.command("doctor", "--json")
    assert {each["what"]: each["told"] for each in looked.json() if each["state"] == "failed"} == {}
    assert (looked.status, looked.told) == (0, "")
