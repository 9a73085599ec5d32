"""`dagbok doctor`: what stands still in a log on Kafka, and whose it is."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from dagbok import TaskSpec
from dagbok.events.envelope import Sender, run_command
from dagbok.events.ids import partition_of
from dagbok.events.log.clock import system_ms
from dagbok.events.run import events as e
from dagbok.events.run.commands import PauseRun
from tests.kafka_roles.role_site import MODULE, PARTITIONS, TIMEOUT_S, Done, RoleSite
from tests.servers.kafka_topics import fresh_prefix, settings_of
from tests.servers.postgres_system import SystemPostgres
from tests.support.places import drop_schemas

Finding = Mapping[str, Any]


def of(done: Done, what: str) -> Sequence[Finding]:
    """The findings of a check that are not well."""
    return [each for each in done.json() if each["what"] == what and each["state"] != "ok"]


def wrong(done: Done) -> set[str]:
    """The checks that found something."""
    return {each["what"] for each in done.json() if each["state"] != "ok"}


async def test_attempts_in_a_pool_that_nobody_serves_are_found_without_naming_it(site: RoleSite) -> None:
    await site.create_topics(pools=["default", "gpu"])
    await site.start("scheduler")
    await site.start("worker", "--import", str(MODULE))
    stream = await site.run("idle", [TaskSpec(goal="g", worker="ones", verifier="yes", pool="gpu")])
    await site.seen(stream, e.AttemptOpened)
    done = await _doctor_says(site, "work.gpu")
    (found,) = of(done, "work.gpu")
    assert (done.status, found["state"], found["about"]) == (1, "failed", {"kind": "work", "pool": "gpu"})
    assert (found["numbers"]["members"], found["numbers"]["open"]) == (0, 1)
    assert "1 attempt open that nobody has, of ones" in found["told"]
    assert "dagbok worker --pool gpu" in found["advice"]
    await site.start("worker", "--import", str(MODULE), "--pool", "gpu")
    await site.seen(stream, e.RunSucceeded)
    assert "work.gpu" not in wrong(await site.command("doctor", "--json"))


async def test_pools_that_have_no_topics_or_cannot_have_any(site: RoleSite) -> None:
    await site.create_topics(pools=["default", "all.gpus"])
    await site.start("scheduler")
    pools = ["gpu", "all_gpus", "gpus/of ann"]
    tasks = [TaskSpec(goal="g", worker="ones", verifier="yes", pool=pool) for pool in pools]
    tasks += [TaskSpec(id="first", goal="g", worker="ones", verifier="yes")]
    tasks += [TaskSpec(goal="g", worker="ones", verifier="yes", pool="later", depends_on=["first"])]
    await site.seen(await site.run("lost", tasks), e.AttemptOpened)
    done = await site.command("doctor", "--json")
    missing, colliding, illegal, later = (of(done, f"pool {pool}")[0] for pool in (*pools, "later"))
    assert done.status == 1
    assert [each["state"] for each in (missing, colliding, illegal, later)] == ["failed", "failed", "failed", "warning"]
    prefix = site.kafka.prefix
    assert missing["told"] == f"has not the topics {prefix}work.gpu, {prefix}review.gpu; 1 task in it is not done"
    create = f"dagbok topics create --partitions {PARTITIONS} --replication 1 --pool gpu"
    assert missing["advice"].startswith(create)
    assert f"cannot be made beside {prefix}review.all.gpus, {prefix}work.all.gpus" in colliding["told"]
    assert f"Kafka allows no topics {prefix}work.gpus/of ann" in illegal["told"]
    assert "call the pool by letters A-Z a-z, digits, . _ and -" in illegal["advice"]
    assert illegal["about"] == {"pool": "gpus/of ann"}
    assert not of(done, "work.gpus/of ann"), "nobody is advised to serve what cannot be served"
    made = await site.command(*create.split()[1:])
    assert made.status == 0, made.told
    assert not of(await site.command("doctor", "--json"), "pool gpu")


async def test_a_key_that_no_process_of_its_pool_has(site: RoleSite) -> None:
    await site.create_topics()
    await site.start("scheduler")
    await site.start("worker", "--import", str(MODULE))
    stream = await site.run("unknown", [TaskSpec(goal="g", worker="nobody has it", verifier="yes")])
    await site.seen(stream, e.AttemptUnserved)
    done = await site.command("doctor", "--json")
    assert (done.status, wrong(done)) == (1, {"keys"})
    (found,) = of(done, "keys")
    assert found["about"] == {"kind": "work", "pool": "default", "key": "nobody has it"}
    assert (found["numbers"]["open"], found["numbers"]["processes"], found["numbers"]["held"]) == (1, 1, 0)
    assert "nobody holds one" in found["told"]
    assert "dagbok worker --pool default" in found["advice"]
    plain = await site.command("doctor")
    assert "the worker 'nobody has it' in the pool default" in plain.out
    assert "all processes of a pool need the same keys" in plain.told


async def test_deadlines_that_have_passed_while_nobody_decides(site: RoleSite) -> None:
    await site.create_topics()
    scheduler = await site.start("scheduler")
    worker = await site.start("worker", "--import", str(MODULE))
    task = TaskSpec(id="slow", goal="g", worker="long", verifier="yes", lease_s=1)
    stream = await site.run("late", [task])
    await site.seen(stream, e.AttemptStarted)
    await asyncio.gather(scheduler.kill(), worker.kill())
    done = await _doctor_says(site, "deadlines")
    (found,) = of(done, "deadlines")
    assert (done.status, found["state"]) == (1, "failed")
    whose = {"tenant": "acme", "project": "docs", "run": stream.removeprefix("run:")}
    assert found["about"] == {**whose, "kind": "lease", "task": "slow"}
    assert found["numbers"]["late_s"] >= 10
    assert "the lease of an attempt of task slow ended" in found["told"]
    await site.start("scheduler")
    await site.seen(stream, e.AttemptLost)
    assert "deadlines" not in wrong(await site.command("doctor", "--json"))


async def test_a_paused_run_is_found_as_soon_as_nothing_of_it_is_under_way(site: RoleSite) -> None:
    await site.create_topics()
    await site.start("scheduler")
    worker = await site.start("worker", "--import", str(MODULE), "--health-port", "0")
    await worker.told("/health/ready", 200)
    held = await site.run("held", [TaskSpec(goal="g", worker="long", verifier="yes")])
    await site.seen(held, e.AttemptStarted)
    idle = await site.run("idle", [TaskSpec(goal="g", worker="nobody has it", verifier="yes")])
    for stream in (held, idle):
        await _pause(site, stream)
    done = await site.command("doctor", "--json", "--artifacts", str(site.folder / "artifacts"))
    (found,) = of(done, "paused")
    assert (done.status, found["state"], found["about"]["run"]) == (0, "warning", idle.removeprefix("run:"))
    assert "(for lunch)" in found["told"]
    assert found["numbers"]["paused_s"] < TIMEOUT_S
    assert f"dagbok resume {idle.removeprefix('run:')} --tenant acme --project docs" in found["advice"]
    await worker.stopped()
    await site.seen(held, e.AttemptReleased)
    assert len(of(await site.command("doctor", "--json"), "paused")) == 2


async def test_tables_of_another_log_are_told_apart(site: RoleSite, server: SystemPostgres) -> None:
    drop_schemas(server.url, "dagbok")
    database = {"DAGBOK_DATABASE": server.url}
    await site.create_topics()
    await site.start("scheduler")
    projector = await site.start("projector", "--health-port", "0", **database)
    stream = await site.run("first", [TaskSpec(goal="g", worker="ones", verifier="yes")])
    partition = partition_of(stream, PARTITIONS)
    await projector.metric(f'dagbok_projected_events_total{{partition="{partition}"}}', 1)
    well = await site.command("doctor", "--json", **database)
    assert "projector" not in wrong(well)
    site.kafka = settings_of(fresh_prefix())
    await site.create_topics()
    done = await site.command("doctor", "--json", **database)
    (found,) = [each for each in of(done, "projector") if each["about"]]
    assert (done.status, found["state"], found["about"]) == (1, "failed", {"partition": partition})
    assert f"events[{partition}] ends at 0" in found["told"]


async def _pause(site: RoleSite, stream: str) -> None:
    sender = Sender("acme", "docs", "user:ann")
    command = run_command(sender, stream, PauseRun("for lunch"), id=f"pause {stream}", now_ms=system_ms())
    answer = await (await site.client()).ask(command)
    assert answer.accepted, answer.reason


async def _doctor_says(site: RoleSite, what: str) -> Done:
    """Ask until it has found something wrong with `what`."""
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            done = await site.command("doctor", "--json")
            if of(done, what):
                return done
