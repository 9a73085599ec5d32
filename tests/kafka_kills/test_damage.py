"""Garbage in the topics, records that are gone, and a broker that is away: what is lost is said, and the rest flows."""

from __future__ import annotations

import asyncio
import random
import re
import secrets
from collections.abc import Callable
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer

from dagbok.agents.kafka.process import KafkaProcess
from dagbok.agents.workers.definitions import Registry
from dagbok.events.codes import Code
from dagbok.events.errors import DagbokError
from dagbok.events.ids import partition_of
from dagbok.events.log.kafka_sizes import BATCH_BYTES
from dagbok.events.log.port import COMMANDS, EVENTS, Record
from dagbok.events.rule import GENESIS
from dagbok.events.run import commands as c
from dagbok.events.run import events as e
from dagbok.events.run.values import Claim, Failure
from dagbok.projections.reading import read_effective
from tests.kafka_kills.member import SESSION_S
from tests.kafka_kills.members import Member
from tests.kafka_kills.site import TIMEOUT_S, Site, open_site
from tests.kafka_kills.truth import check_site
from tests.servers.kafka_broker import Broker
from tests.support.audit import effective_events

GARBAGE = (b"", b"\xff\xfe", b"{}", b"[" * 50_000, b"\x00" * 1_000, b'{"v":99}')


async def told(member: Member, wanted: Callable[[str], bool]) -> str:
    """Wait until its log says something."""
    async with asyncio.timeout(TIMEOUT_S):
        while not wanted(text := member.log.read_text()):  # noqa: ASYNC110 – it is another process
            await asyncio.sleep(0.1)
    return text


async def litter(site: Site, topic: str) -> None:
    """Garbage in every partition of a topic."""
    producer = AIOKafkaProducer(bootstrap_servers=site.settings.bootstrap_servers)
    await producer.start()
    try:
        for partition in range(site.partitions):
            for value in GARBAGE:
                await producer.send_and_wait(site.settings.prefix + topic, value, b"any key", partition=partition)
    finally:
        await producer.stop()


async def test_garbage_in_every_topic_is_passed_over_and_the_rest_flows(site: Site) -> None:
    member = await site.add("scheduler,worker")
    await site.ended([await site.start(f"before {number}") for number in range(4)])
    for topic in (COMMANDS, EVENTS, "work.default", "review.default", "replies", "snapshots"):
        await litter(site, topic)
    await site.ended([await site.start(f"after {number}") for number in range(8)])
    for partition in range(site.partitions):
        events = [event for _, event in await effective_events(site.process.log, partition)]
        refused = [event for event in events if isinstance(event, e.CommandRefused) and event.code == "undecodable"]
        assert len(refused) == len(GARBAGE), "each is a dead letter"
        assert {event.raw for event in refused} >= {b"\xff\xfe", b"{}"}, "with its bytes"
    text = await told(member, lambda text: "garbage" in text)
    assert "lane.garbage" in text
    assert "replies.garbage" in text
    await site.kill(member)
    await site.add("scheduler,worker")
    await site.ended([await site.start(f"by the next {number}") for number in range(4)])
    await check_site(site)


async def test_commands_that_were_removed_undecided_halt_their_partition_and_no_other(site: Site) -> None:
    stream = await _with_worker(site)
    lost = partition_of(stream, site.partitions)
    end = (await site.process.log.bounds(COMMANDS, lost)).end
    for number in range(3):
        await site.process.log.append(COMMANDS, lost, [Record(stream, b"never decided %d" % number)])
    await site.process.log.delete_before(COMMANDS, lost, end + 2)
    await _halted_alone(site, lost, "removed undecided")


async def test_events_that_were_removed_halt_their_partition_and_no_other(site: Site) -> None:
    stream = await _with_worker(site)
    lost = partition_of(stream, site.partitions)
    end = (await site.process.log.bounds(EVENTS, lost)).end
    await site.process.log.delete_before(EVENTS, lost, end)
    await _halted_alone(site, lost, f"events[{lost}]")


async def _with_worker(site: Site) -> str:
    """Everything was decided once, and nobody decides any more."""
    decider = await site.add("scheduler", MEMBER_SNAPSHOT_BYTES=str(2**30))
    await site.add("worker")
    streams = [await site.start(f"before {number}") for number in range(8)]
    await site.ended(streams)
    site.members.remove(decider)
    await decider.leave()
    return streams[0]


async def _halted_alone(site: Site, lost: int, why: str) -> None:
    member = await site.add("scheduler")
    text = await told(member, lambda text: "partition.halted" in text)
    line = next(line for line in text.splitlines() if "partition.halted" in line)
    assert f"partition={lost}" in line
    assert why in text
    keys = [f"after {number}" for number in range(40)]
    others = [key for key in keys if partition_of(site.stream_of(key), site.partitions) != lost][:6]
    await site.ended([await site.start(key) for key in others])
    assert lost not in await member.ask(partitions=True)


async def test_a_broker_that_is_away_at_the_start_and_in_the_middle_is_waited_for(
    broker: Broker, tmp_path: Path
) -> None:
    async with open_site(broker.bootstrap, tmp_path) as site:
        await asyncio.to_thread(broker.stop)
        members = [await site.begin(role) for role in ("scheduler", "worker")]
        text = await told(members[0], lambda text: text.count("waiting:") >= 2)
        assert "log_unreachable" in text or "LOG-UNREACHABLE" in text
        await asyncio.to_thread(broker.start)
        streams = [await site.start(f"before {number}") for number in range(4)]
        await asyncio.to_thread(broker.stop)
        await asyncio.sleep(12)  # longer than any request, and than the session of the groups
        await asyncio.to_thread(broker.start)
        streams += [await site.start(f"after {number}") for number in range(4)]
        await site.ended(streams)
        await check_site(site)


async def test_who_begins_to_take_part_while_no_broker_answers_takes_part_as_soon_as_one_does(
    broker: Broker, tmp_path: Path
) -> None:
    async with open_site(broker.bootstrap, tmp_path) as site:
        process = await KafkaProcess.open(site.settings, str(tmp_path), Registry(), session_s=SESSION_S)
        await asyncio.to_thread(broker.stop)
        process.schedule()
        process.work(["default"])
        await asyncio.sleep(2)  # longer than it takes to find out that nobody answers
        await asyncio.to_thread(broker.start)
        async with asyncio.timeout(TIMEOUT_S):
            taking = asyncio.ensure_future(_takes_part(process))
            await asyncio.wait((taking, process.failure), return_when=asyncio.FIRST_COMPLETED)
        assert taking.done(), process.failure.result()
        await process.close()


async def _takes_part(process: KafkaProcess) -> None:
    """It decides, and reads both lanes of its pool."""
    assert process.scheduler is not None
    await process.scheduler.owned(0)
    while not all(reader.partitions for reader in process.queue.readers.values()):  # noqa: ASYNC110 – Faust tells nobody
        await asyncio.sleep(0.1)


async def test_a_record_over_the_size_limit_is_refused_to_its_sender_and_nothing_is_written(site: Site) -> None:
    ends = [(await site.process.log.bounds(COMMANDS, number)).end for number in range(site.partitions)]
    with pytest.raises(DagbokError) as caught:
        await site.process.log.append(COMMANDS, 0, [Record("run:x", secrets.token_bytes(BATCH_BYTES + 1))])
    assert caught.value.code == Code.TOO_LARGE
    assert [(await site.process.log.bounds(COMMANDS, number)).end for number in range(site.partitions)] == ends
    large = await site.process.log.append(COMMANDS, 0, [Record("run:x", secrets.token_bytes(8 * 2**20))])
    await site.add("scheduler,worker")
    await site.ended([await site.start(f"behind it {number}") for number in range(8)])
    refused = dict(await effective_events(site.process.log, 0))[large]
    assert isinstance(refused, e.CommandRefused)
    assert 0 < len(refused.raw or b"") <= 32 * 1024


async def test_two_tenants_cannot_reach_each_other_s_runs_and_learn_nothing_of_them(site: Site) -> None:
    chance = random.Random(7)
    await site.add("scheduler,worker")
    tenants = ("acme", "evil")
    streams = {name: [await site.start(f"{name} {n}", tenant=name) for n in range(3)] for name in tenants}
    asked = 0
    for _ in range(60):
        victim, attacker = chance.sample(tenants, 2)
        stream, task = chance.choice(streams[victim]), chance.choice(("root", "last", "child-1", "no-such"))
        answer = await site.ask(stream, chance.choice(_commands(task)), tenant=attacker)
        nothing = await site.ask(f"run:{secrets.token_hex(16)}", chance.choice(_commands(task)), tenant=attacker)
        assert (answer.accepted, answer.code) == (nothing.accepted, nothing.code) == (False, "not_found")
        assert (answer.advice, answer.retry) == (nothing.advice, nothing.retry)
        told = (answer.reason or "").replace(stream, "").replace(f"{attacker}/docs", "")
        assert not {victim, task} & set(re.findall(r"[\w-]+", told)), answer
        asked += 1
    await site.ended(streams["acme"] + streams["evil"])
    refusals = 0
    for partition in range(site.partitions):
        position = GENESIS
        while True:
            position, commits = await read_effective(site.process.log, partition, position, 500)
            if not commits:
                break
            for commit in commits:
                if b"not_found" in bytes(commit.stored_body):
                    refusals += 1
                    assert commit.seal.stream is None, "it belongs to no stream"
    assert refusals == 2 * asked
    await check_site(site)


def _commands(task: str) -> list[c.RunCommand]:
    claim = Claim("p", 1, "n")
    return [
        c.PauseRun("mine now"),
        c.CancelRun("mine now"),
        c.ResumeRun(),
        c.CancelTask(task),
        c.RetryTask(task),
        c.ResolveBlock(task),
        c.StartAttempt(task, 1, claim),
        c.FailAttempt(task, 1, claim, Failure("retryable", "tool", "ValueError", "no")),
        c.ReportGone("p"),
    ]
