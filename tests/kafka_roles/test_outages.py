"""Broker and database go away in the midst: the roles wait, with a word, go on by themselves, and lose nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import psycopg
import pytest

from dagbok import TaskSpec
from dagbok.events.ids import partition_of
from dagbok.events.run import events as e
from tests.kafka_roles.role_site import MODULE, PARTITIONS, Role, RoleSite
from tests.servers.kafka_broker import Broker
from tests.servers.kafka_topics import fresh_prefix, settings_of
from tests.servers.postgres_system import SystemPostgres
from tests.support.hosts import TIMEOUT_S

HEALTH = ("--health-port", "0")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One that a test may kill."""
    broker = Broker(tmp_path_factory.mktemp("kafka"))
    broker.start()
    yield broker
    broker.stop()


def ones(count: int) -> list[TaskSpec]:
    return [TaskSpec(goal=f"task {number}", worker="ones", verifier="yes") for number in range(count)]


async def projected(server: SystemPostgres, status: str, runs: int) -> int:
    """Wait until so many runs have a status in the tables; the verified tasks of all runs."""
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(server.url) as connection:
                    found = await connection.execute(
                        "SELECT count(*) FILTER (WHERE status = %s), sum(verified) FROM dagbok.runs", (status,)
                    )
                    row = await found.fetchone()
            except psycopg.Error:
                row = None
            if row is not None and row[0] >= runs:
                return int(row[1])
            await asyncio.sleep(0.1)


async def test_a_projector_writes_the_tables_waits_for_its_database_and_goes_on(
    site: RoleSite, server: SystemPostgres
) -> None:
    await site.create_topics()
    server.stop()
    projector = await site.start("projector", "--database", server.url, *HEALTH)
    waiting = await projector.logged("waiting", what="database")
    assert "start the database" in waiting["advice"]
    assert (await projector.told("/health/ready", 503))["live"]
    server.start()
    await projector.told("/health/ready", 200)
    await site.start("scheduler")
    await site.start("worker", "--import", str(MODULE))
    before = await site.run("before", ones(5))
    await site.seen(before, e.RunSucceeded)
    assert await projected(server, "succeeded", 1) == 5
    server.kill()
    await site.seen(await site.run("meanwhile", ones(5)), e.RunSucceeded)
    await projector.logged("projection.waits")
    server.start()
    assert await projected(server, "succeeded", 2) == 10
    await projector.metric(f'dagbok_projected_events_total{{partition="{partition_of(before, PARTITIONS)}"}}', 5)
    assert await projector.stopped() == 0


async def test_roles_end_in_time_while_the_broker_is_away(site: RoleSite, broker: Broker) -> None:
    site.kafka = settings_of(fresh_prefix(), broker.bootstrap)
    await site.create_topics()
    scheduler = await site.start("scheduler")
    worker = await site.start("worker", "--import", str(MODULE), *HEALTH)
    await scheduler.logged("partition.owned")
    await worker.told("/health/ready", 200)
    await asyncio.to_thread(broker.kill)
    try:
        assert list(await asyncio.gather(scheduler.stopped(), worker.stopped())) == [0, 0]
    finally:
        await asyncio.to_thread(broker.start)


async def test_a_broker_that_is_killed_and_comes_back_finds_all_roles_at_work(site: RoleSite, broker: Broker) -> None:
    site.kafka = settings_of(fresh_prefix(), broker.bootstrap)
    await site.create_topics()
    roles: list[Role] = [
        await site.start("scheduler", *HEALTH),
        await site.start("worker", "--import", str(MODULE), *HEALTH),
    ]
    await site.seen(await site.run("before", ones(5)), e.RunSucceeded)
    broker.kill()
    starting = asyncio.create_task(site.run("meanwhile", ones(20)))
    for role in roles:
        assert (await role.get("/health/live"))[0] == 200
    await asyncio.to_thread(broker.start)
    found = await site.seen(await starting, e.RunSucceeded)
    assert sum(isinstance(event, e.TaskVerified) for event in found) == 20
    assert [await role.stopped() for role in roles] == [0, 0]
