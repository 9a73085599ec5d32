"""What must hold of a cluster after anything: read from the topics alone, by steps that are not those of the product
where that is possible."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec
from aiokafka import AIOKafkaConsumer, TopicPartition

from dagbok.agents.kafka.chunks import chunks_in
from dagbok.agents.kafka.slots import KafkaSlots
from dagbok.events.body import decode_body
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.log.kafka_thread import LoopThread
from dagbok.events.log.kafka_unreadable import PastUnreadable, Records
from dagbok.events.log.port import Log
from dagbok.events.run import events as e
from dagbok.projections.partition import PartitionState, apply
from dagbok.projections.reading import read_effective
from dagbok.projections.snapshots.keeper import SnapshotKeeper
from dagbok.testing.simulation.sessions import SessionAudit
from tests.kafka_kills.site import Site
from tests.kafka_kills.workload import grew
from tests.support.audit import check_decided, effective_commits, effective_events
from tests.support.snapshotting import image

ZERO: Final = "0" * 64


@dataclass
class Chain:
    """The commits of one partition that count, as an independent reader finds them."""

    offsets: list[int]
    command_offsets: list[int]
    void: int
    end: int


async def raw_values(settings: KafkaSettings, topic: str, partition: int) -> list[tuple[int, bytes]]:
    """Every record of a partition, read by a plain consumer; empty ones where it cannot decode them."""
    place = TopicPartition(settings.prefix + topic, partition)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=settings.bootstrap_servers, max_partition_fetch_bytes=2**26, auto_offset_reset="earliest"
    )

    async def fetch(places: Collection[TopicPartition], wait_s: float, most: int | None) -> Records:
        fetched: Records = await consumer.getmany(*places, timeout_ms=wait_s * 1000, max_records=most)
        return fetched

    past = PastUnreadable()
    await consumer.start()
    try:
        consumer.assign([place])
        end = (await consumer.end_offsets([place]))[place]
        found: list[tuple[int, bytes]] = []
        while (found[-1][0] + 1 if found else 0) < end:
            for records in (await past.fetch(consumer, fetch, [place], 0.5)).values():
                found += [(record.offset, record.value or b"") for record in records]
        return found
    finally:
        await consumer.stop()


def chain_of(values: list[tuple[int, bytes]]) -> Chain:
    """The rule of `docs/design/architecture.md`, 3.2, written again."""
    chain = Chain([], [], 0, 0)
    after, head = -1, ZERO
    for offset, value in values:
        chain.end = offset + 1
        seal = _seal(value)
        if seal is None or (seal["after"], seal["prev"], seal["offset"]) != (after, head, offset):
            chain.void += 1
            continue
        after, head = seal["command_offset"], sha256(value).hexdigest()
        chain.offsets.append(offset)
        chain.command_offsets.append(after)
    return chain


def _seal(value: bytes) -> dict[str, Any] | None:
    line, newline, _ = value.partition(b"\n")
    try:
        seal = json.loads(line)
    except (ValueError, RecursionError):
        return None
    is_seal = newline and isinstance(seal, dict) and {"after", "prev", "offset", "command_offset"} <= seal.keys()
    return seal if is_seal else None


async def fold(log: Log, partition: int, state: PartitionState, until: int) -> PartitionState:
    """Go on from `state` up to an offset."""
    while state.position.next_offset < until:
        limit = min(1_000, until - state.position.next_offset)
        position, commits = await read_effective(log, partition, state.position, limit)
        assert position.next_offset > state.position.next_offset
        for commit in commits:
            apply(state, commit, decode_body(commit.stored_body, commit.seal.codec, commit.seal.raw_size))
        state.position = position
    return state


def differences(one: PartitionState, other: PartitionState) -> list[str]:
    """Where two states differ; empty when they are the same."""
    if _plain(one) == _plain(other):
        return []
    return list(_differ("", json.loads(image(one)), json.loads(image(other)))) or ["not to be shown in JSON"]


def _plain(state: PartitionState) -> PartitionState:
    """As it is read from its JSON: a default that is written out and one that is not are the same."""
    return msgspec.json.decode(image(state), type=PartitionState)


def _differ(where: str, one: Any, other: Any) -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in {**one, **other}:
            yield from _differ(f"{where}.{key}", one.get(key), other.get(key))
    elif one != other:
        yield f"{where}: {one!r} and {other!r}"[:300]


async def check_site(site: Site, *, images: bool = True) -> int:
    """The log is right; who decides has the state that the topic says, and so has who starts from a snapshot. Returns
    how many snapshots were compared."""
    snapshots = 0
    for partition in range(site.partitions):
        await check_decided(site.process.log, partition)
        commits = await effective_commits(site.process.log, partition)
        told = [(seal.stream or "", event) for seal, events in commits for event in events]
        SessionAudit(told, grew).check()
        chain = chain_of(await raw_values(site.settings, "events", partition))
        assert len(set(chain.command_offsets)) == len(chain.command_offsets)
        if images:
            await _check_image(site, partition)
        snapshots += await _check_snapshot(site, partition, chain.end)
    return snapshots


async def refused(site: Site, code: str) -> list[e.CommandRefused]:
    """The refusals of a code, in all partitions."""
    partitions = [await effective_events(site.process.log, number) for number in range(site.partitions)]
    found = [event for events in partitions for _, event in events]
    return [event for event in found if isinstance(event, e.CommandRefused) and event.code == code]


async def voids(site: Site) -> int:
    """How many records of `events` count for nobody."""
    partitions = [await raw_values(site.settings, "events", number) for number in range(site.partitions)]
    return sum(chain_of(values).void for values in partitions)


async def _check_image(site: Site, partition: int) -> None:
    for member in site.of("scheduler"):
        if partition in await site.held(member):
            path = Path(await member.ask(image=partition))
            told = msgspec.json.decode(path.read_bytes(), type=PartitionState)
            whole = await fold(site.process.log, partition, PartitionState(partition), told.position.next_offset)
            different = differences(told, whole)
            assert not different, different


async def _check_snapshot(site: Site, partition: int, until: int) -> int:
    thread = LoopThread("truth")
    try:
        chunks = chunks_in(str(site.folder))
        keeper = SnapshotKeeper(site.process.log, partition, chunks, KafkaSlots(site.settings, partition, thread))
        loaded = await keeper.load()
        if loaded.position.next_offset == 0:
            return 0
        resumed = await fold(site.process.log, partition, loaded, until)
        whole = await fold(site.process.log, partition, PartitionState(partition), resumed.position.next_offset)
        different = differences(resumed, whole)
        assert not different, different
        return 1
    finally:
        await thread.close(_nothing())


async def _nothing() -> None:
    """The thread has nothing of ours to let go."""
