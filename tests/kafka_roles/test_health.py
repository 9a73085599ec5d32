"""What a role tells of itself, and that it ends when a part of it is dead although the process lives."""

from __future__ import annotations

from dagbok import TaskSpec
from dagbok.events.log.port import COMMANDS, Record
from dagbok.events.run import events as e
from tests.kafka_roles.role_site import MODULE, PARTITIONS, Role, RoleSite

HEALTH = ("--health-port", "0")
ONE = [TaskSpec(goal="g", worker="ones", verifier="yes")]
INTERNAL = 70
STALL_S = "2"
FULL_LOOKS = 4
"""So often a process looks before it takes what stands still for dead."""

DEAF = """
from dagbok.agents.kafka.lane import LaneIntake
import asyncio
async def never(self, dispatch, acknowledge):
    await asyncio.Event().wait()
LaneIntake.offer = never
"""
HANGING = """
from dagbok.agents.kafka.process import KafkaProcess
from dagbok.cli import role
import asyncio
role.STOP_WITHIN_S = 1.0
async def never(self):
    await asyncio.Event().wait()
KafkaProcess.close = never
"""
DYING = """
from dagbok.agents.kafka.lane import LaneIntake
async def die(self, dispatch, acknowledge):
    raise RuntimeError("a fault nobody has foreseen")
LaneIntake.offer = die
"""


async def test_a_scheduler_that_takes_part_is_ready_and_tells_how_far_it_is(site: RoleSite) -> None:
    await site.create_topics()
    scheduler = await site.start("scheduler", *HEALTH)
    told = await scheduler.told("/health/ready", 200)
    assert (told["role"], told["live"], told["why"]) == ("scheduler", True, [])
    await scheduler.metric('dagbok_held_partitions{role="scheduler"}', PARTITIONS)
    worker = await site.start("worker", "--import", str(MODULE), *HEALTH)
    assert (await worker.told("/health/ready", 200))["role"] == "worker"
    await site.seen(await site.run("first", ONE), e.RunSucceeded)
    assert (await scheduler.get("/health/live"))[0] == 200


async def test_what_a_scheduler_decides_is_counted(site: RoleSite) -> None:
    await site.create_topics()
    scheduler = await site.start("scheduler", *HEALTH)
    await site.start("worker", "--import", str(MODULE))
    await site.seen(await site.run("first", ONE * 5), e.RunSucceeded)
    await scheduler.metric('dagbok_decisions_total{outcome="accepted",type="StartRun"}', 1)
    await scheduler.metric('dagbok_attempts_total{end="candidate",kind="work"}', 5)
    await scheduler.metric('dagbok_attempts_total{end="pass",kind="verify"}', 5)
    assert await scheduler.metric('dagbok_attempt_seconds_count{kind="work"}', 5) == 5
    assert await scheduler.metric("dagbok_takeovers_total", PARTITIONS) == PARTITIONS
    assert await scheduler.metric('dagbok_queue_depth_attempts{kind="work",pool="default"}', 0) == 0


async def test_attempts_that_wait_are_told_and_how_long_they_waited(site: RoleSite) -> None:
    await site.create_topics()
    scheduler = await site.start("scheduler", *HEALTH)
    await scheduler.logged("partition.owned")
    stream = await site.run("long", [TaskSpec(goal="takes hours", worker="long", verifier="yes")])
    waiting = 'dagbok_queue_depth_attempts{kind="work",pool="default"}'
    assert await scheduler.metric(waiting, 1) == 1
    await site.start("worker", "--import", str(MODULE))
    await site.seen(stream, e.AttemptStarted)
    assert await scheduler.metric('dagbok_schedule_to_start_seconds_count{kind="work"}', 1) == 1
    assert await scheduler.metric(waiting, 0) == 0


async def test_attempts_in_a_pool_that_nobody_has_served_are_told_apart_until_somebody_does(site: RoleSite) -> None:
    await site.create_topics()
    scheduler = await site.start("scheduler", *HEALTH)
    await scheduler.logged("partition.owned")
    stream = await site.run("typo", [TaskSpec(goal="g", worker="ones", verifier="yes", pool="gpuu")])
    assert await scheduler.metric('dagbok_queue_depth_attempts{kind="work",pool="(no topic)"}', 1) == 1
    await scheduler.logged("queue.no_topic")
    await site.start("worker", "--import", str(MODULE), "--pool", "gpuu")
    await site.seen(stream, e.RunSucceeded)


async def test_what_has_to_be_repeated_is_counted_by_its_cause(site: RoleSite) -> None:
    await site.create_topics()
    scheduler = await site.start("scheduler", *HEALTH)
    await site.start("worker", "--import", str(MODULE))
    stream = await site.run("again", [TaskSpec(goal="g", worker="second try", verifier="third")])
    await site.seen(stream, e.RunSucceeded)
    assert await scheduler.metric('dagbok_retries_total{cause="failed",kind="work"}', 1) == 1
    assert await scheduler.metric('dagbok_retries_total{cause="rejected",kind="work"}', 1) == 1
    assert await scheduler.metric('dagbok_attempts_total{end="fail",kind="verify"}', 1) == 1


async def test_commands_that_nobody_can_read_are_dead_letters_and_garbage_elsewhere_is_counted(site: RoleSite) -> None:
    await site.create_topics()
    scheduler = await site.start("scheduler", *HEALTH)
    worker = await site.start("worker", "--import", str(MODULE), *HEALTH)
    client = await site.client()
    await client.log.append(COMMANDS, 0, [Record("k", b"\xff\xfe no command")])
    client.queue.put_raw(("work", "default"), b"no dispatch")
    for metric in ("dagbok_dead_letters_total", "dagbok_refusals_total"):
        assert await scheduler.metric(f'{metric}{{code="undecodable"}}', 1) == 1
    assert await scheduler.metric('dagbok_decisions_total{outcome="refused",type="other"}', 1) == 1
    assert await worker.metric(f'dagbok_garbage_records_total{{topic="{site.kafka.prefix}work.default"}}', 1) == 1
    assert (await worker.told("/health/live", 200))["live"]


async def _dead(site: RoleSite, fault: str) -> Role:
    await site.create_topics()
    await site.start("scheduler")
    module = site.folder / "faulty.py"
    module.write_text(MODULE.read_text() + fault)
    worker = await site.start("worker", "--import", str(module), DAGBOK_STALL_S=STALL_S)
    await worker.logged("worker.serving")
    await site.run("first", ONE)
    return worker


async def test_a_worker_that_takes_nothing_although_it_could_ends(site: RoleSite) -> None:
    worker = await _dead(site, DEAF)
    assert await worker.ended() == INTERNAL
    said = " ".join(worker.unlogged)
    assert "work.default" in said
    assert "does not progress" in said


async def test_a_worker_whose_agent_dies_ends(site: RoleSite) -> None:
    worker = await _dead(site, DYING)
    assert await worker.ended() != 0


async def test_a_worker_that_is_only_full_does_not_end(site: RoleSite) -> None:
    await site.create_topics()
    await site.start("scheduler")
    module = site.folder / "full.py"
    module.write_text(MODULE.read_text().replace('@worker("long")', '@worker("long", concurrency=1)'))
    worker = await site.start("worker", "--import", str(module), *HEALTH, DAGBOK_STALL_S="1")
    long = [TaskSpec(goal=f"takes hours {number}", worker="long", verifier="yes") for number in range(5)]
    await site.seen(await site.run("long", long), e.AttemptStarted)
    topic = f"{site.kafka.prefix}work.default"
    lags = [f'dagbok_lag_records{{partition="{number}",role="worker",topic="{topic}"}}' for number in range(PARTITIONS)]
    found = [await worker.metric(lag, 0) for lag in lags]
    assert sum(found) >= 1, "something waits"
    looked = await worker.metric("dagbok_progress_checks_total", 1)
    await worker.metric("dagbok_progress_checks_total", looked + 4 * FULL_LOOKS)
    assert (await worker.told("/health/live", 200))["live"]
    assert await worker.stopped() == 0


async def test_a_health_port_that_is_taken_is_an_error_of_usage(site: RoleSite) -> None:
    scheduler = await site.start("scheduler", *HEALTH)
    port = (await scheduler.logged("health.serving"))["port"]
    other = await site.start("scheduler", "--health-port", str(port))
    assert await other.ended() == 2
    assert "DAGBOK-USAGE" in " ".join(other.unlogged)


async def test_a_worker_that_is_dead_and_does_not_let_go_either_ends(site: RoleSite) -> None:
    worker = await _dead(site, DEAF + HANGING)
    assert await worker.ended() == INTERNAL
    assert "not ended within 1 s" in " ".join(worker.unlogged)
