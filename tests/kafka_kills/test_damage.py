"""Garbage in the topics, records that are gone, and a broker that is away: what is lost is said, and the rest flows."""

from __future__ import annotations

import secrets

import pytest
from aiokafka import AIOKafkaProducer

from dagbok.agents.scheduler.losses import accept_loss
from dagbok.events.codes import Code
from dagbok.events.errors import DagbokError, Refused
from dagbok.events.ids import partition_of
from dagbok.events.log.kafka_sizes import BATCH_BYTES
from dagbok.events.log.port import COMMANDS, EVENTS, Record, Topic
from dagbok.events.run import events as e
from tests.kafka_kills.site import EVERYBODY, SERVING, Site
from tests.kafka_kills.tables import check_tables
from tests.kafka_kills.truth import check_site, raw_values
from tests.servers.kafka_unreadable import send_unreadable
from tests.support.audit import effective_events
from tests.support.scale import scale

GARBAGE = (b"", b"\xff\xfe", b"{}", b"[" * 50_000, b"\x00" * 1_000, b'{"v":99}')
HEADERS = (("traceparent", b"\xff"), ("name", None))
BEFORE = b"before what cannot be decoded"
LITTER = len(GARBAGE) + 3
"""Records in each partition: also one that nobody can decode, between two others."""


async def litter(site: Site, topic: str) -> None:
    """Garbage in every partition of a topic."""
    producer = AIOKafkaProducer(bootstrap_servers=site.settings.bootstrap_servers)
    await producer.start()
    try:
        for partition in range(site.partitions):
            for value in GARBAGE:
                await producer.send_and_wait(
                    site.settings.prefix + topic, value, b"any key", partition=partition, headers=list(HEADERS)
                )
            bootstrap, full_name = site.settings.bootstrap_servers, site.settings.prefix + topic
            await send_unreadable(bootstrap, full_name, partition, before=BEFORE)
    finally:
        await producer.stop()


async def test_garbage_in_every_topic_is_passed_over_and_the_rest_flows(site: Site) -> None:
    """And commits of another history in `events`, as an owner that was overtaken would write them."""
    member = await site.add(EVERYBODY)
    await site.begin("projector")
    await site.ended([await site.start(f"before {number}") for number in range(4)])
    for topic in (COMMANDS, EVENTS, "work.default", "review.default", "replies", "snapshots"):
        await litter(site, topic)
    foreign = [value for _, value in (await raw_values(site.settings, EVENTS, 0))[:3]]
    await site.process.log.append(EVENTS, 0, [Record("run:late", value) for value in foreign])
    await site.ended([await site.start(f"after {number}") for number in range(8)])
    for partition in range(site.partitions):
        events = [event for _, event in await effective_events(site.process.log, partition)]
        dead = [event for event in events if isinstance(event, e.CommandRefused) and event.code == "undecodable"]
        assert len(dead) == LITTER, "each is a dead letter"
        assert {event.raw for event in dead} >= {b"\xff\xfe", b"{}"}, "with its bytes"
    await member.logged(lambda text: "lane.garbage" in text and "replies.garbage" in text)
    await site.kill(member)
    second = await site.add(EVERYBODY)
    await site.ended([await site.start(f"by the next {number}") for number in range(4)])
    assert "snapshot.unreadable" in second.log.read_text()
    await check_site(site)
    assert await check_tables(site) >= LITTER * site.partitions + len(foreign), "so many records were void"


@pytest.mark.parametrize("topic", (COMMANDS, EVENTS)[: scale(1, 2)])
async def test_records_that_were_removed_and_are_needed_halt_their_partition_and_no_other(
    site: Site, topic: Topic
) -> None:
    log, stream = site.process.log, await _with_worker(site)
    lost = partition_of(stream, site.partitions)
    if topic == COMMANDS:
        await log.append(COMMANDS, lost, [Record(stream, b"never decided %d" % number) for number in range(3)])
    end = (await log.bounds(topic, lost)).end
    await log.delete_before(topic, lost, end - 1 if topic == COMMANDS else end)
    await _halted_alone(site, lost, "removed undecided" if topic == COMMANDS else f"events[{lost}]")
    if topic == COMMANDS:
        await _accepted(site, lost)


async def _accepted(site: Site, lost: int) -> None:
    """Its halted owner goes on by itself, with the next command first; to accept again is refused."""
    event = await accept_loss(site.process.log, lost, actor="operator:ann")
    assert event.to_offset - event.from_offset == 1, "of the three that were never decided one is left"
    keys = [f"accepted {number}" for number in range(40)]
    here = [key for key in keys if partition_of(site.stream_of(key), site.partitions) == lost][:2]
    await site.ended([await site.start(key) for key in here])
    with pytest.raises(Refused, match="no command of partition"):
        await accept_loss(site.process.log, lost, actor="operator:ann")
    await check_site(site)


async def _with_worker(site: Site) -> str:
    """Everything was decided once, and nobody decides any more."""
    decider = await site.add("scheduler", MEMBER_SNAPSHOT_BYTES=str(2**30))
    await site.add(SERVING)
    streams = [await site.start(f"before {number}") for number in range(8)]
    await site.ended(streams)
    await site.leave(decider)
    return streams[0]


async def _halted_alone(site: Site, lost: int, why: str) -> None:
    member = await site.add("scheduler")
    text = await member.logged(lambda text: "partition.halted" in text)
    line = next(line for line in text.splitlines() if "partition.halted" in line)
    assert f"partition={lost}" in line
    assert why in text
    keys = [f"after {number}" for number in range(40)]
    others = [key for key in keys if partition_of(site.stream_of(key), site.partitions) != lost][:6]
    await site.ended([await site.start(key) for key in others])
    assert lost not in await site.held(member)


async def test_a_record_over_the_size_limit_is_refused_to_its_sender_and_nothing_is_written(site: Site) -> None:
    ends = [(await site.process.log.bounds(COMMANDS, number)).end for number in range(site.partitions)]
    with pytest.raises(DagbokError) as caught:
        await site.process.log.append(COMMANDS, 0, [Record("run:x", secrets.token_bytes(BATCH_BYTES + 1))])
    assert caught.value.code == Code.TOO_LARGE
    assert [(await site.process.log.bounds(COMMANDS, number)).end for number in range(site.partitions)] == ends
    large = await site.process.log.append(COMMANDS, 0, [Record("run:x", secrets.token_bytes(8 * 2**20))])
    await site.add(EVERYBODY)
    await site.ended([await site.start(f"behind it {number}") for number in range(8)])
    refused = dict(await effective_events(site.process.log, 0))[large]
    assert isinstance(refused, e.CommandRefused)
    assert 0 < len(refused.raw or b"") <= 32 * 1024


