"""What is wrong with a deployment on Kafka, as far as it can be seen from outside its processes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Final, Literal

import msgspec
from aiokafka import AIOKafkaProducer

from dagbok.agents.kafka.names import lane_group, lane_topic, projector_group, replies_topic, scheduler_group
from dagbok.agents.kafka.offsets import Offsets
from dagbok.agents.kafka.replies import ReplyRecord
from dagbok.agents.queue.port import KINDS, lane_of
from dagbok.agents.scheduler.inbox import MAX_CLOCK_AHEAD_MS
from dagbok.events.commit import split_value
from dagbok.events.errors import DagbokError
from dagbok.events.log.clock import system_ms
from dagbok.events.log.kafka import KafkaLog
from dagbok.events.log.kafka_client import Place
from dagbok.events.log.kafka_errors import FAILURES, explain
from dagbok.events.log.kafka_options import client_options
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.log.kafka_topics import check, declared
from dagbok.events.log.port import COMMANDS, EVENTS
from dagbok.projections.queries import Queries
from dagbok.projections.store import Tables

PROGRAMS: Final = ("dagbok", "aiokafka", "faust-streaming")
CLOCK_MS: Final = 1_000
"""A clock that is off by more is worth a word; by `MAX_CLOCK_AHEAD_MS` a partition halts."""

State = Literal["ok", "warning", "failed"]


class Finding(msgspec.Struct, frozen=True):
    """One check: of `what`, how it stands, in words. `numbers`: what was measured, by name."""

    what: str
    state: State
    told: str
    advice: str = ""
    numbers: Mapping[str, float] = {}


Look = Callable[[], Awaitable[Sequence[Finding]]]


async def examine(settings: KafkaSettings, pools: Sequence[str], database: str | None) -> Sequence[Finding]:
    """All checks, the broker first: without one there are no others. `database`: of the tables, if there are any."""
    versions = Finding("versions", "ok", ", ".join(f"{name} {version(name)}" for name in PROGRAMS))
    try:
        log = await KafkaLog.open(settings)
    except DagbokError as error:
        return [versions, Finding("broker", "failed", error.message, error.advice)]
    offsets = Offsets(settings)
    try:
        broker = Finding(
            "broker", "ok", f"{settings.bootstrap_servers} answers", numbers={"partitions": log.partitions}
        )
        examination = _Examination(settings, log, offsets, pools, database)
        found = [versions, broker]
        for name, look in (
            ("topics", examination.topics),
            ("clock", examination.clock),
            ("scheduler", examination.scheduler),
            ("pools", examination.served),
            ("projector", examination.projector),
        ):
            found += await _surely(name, look, settings)
        return found
    finally:
        await offsets.close()
        await log.close()


async def _surely(name: str, look: Look, settings: KafkaSettings) -> Sequence[Finding]:
    try:
        return await look()
    except (*FAILURES, DagbokError) as error:
        told = explain(error, settings.bootstrap_servers)
        return [Finding(name, "failed", told.message, told.advice)]


class _Examination:
    def __init__(
        self, settings: KafkaSettings, log: KafkaLog, offsets: Offsets, pools: Sequence[str], database: str | None
    ) -> None:
        self._settings, self._log, self._offsets = settings, log, offsets
        self._pools, self._database = pools, database

    async def topics(self) -> Sequence[Finding]:
        """They are as they have to be. Replication is the cluster's affair."""
        wanted = declared(self._settings.prefix, self._log.partitions, pools=self._pools)
        wrong = await check(self._settings, wanted)
        if not wrong:
            return [Finding("topics", "ok", f"{len(wanted)} topics as they have to be")]
        advice = "dagbok topics create makes what is missing; dagbok topics check tells the rest"
        return [
            Finding("topics", "failed", f"{each.topic}: {each.what} is {each.found}, not {each.wanted}", advice)
            for each in wrong
        ]

    async def clock(self) -> Sequence[Finding]:
        """By a record that nobody waits for: the broker puts its time on it."""
        producer = AIOKafkaProducer(**client_options(self._settings), acks=1)
        await producer.start()
        try:
            value = msgspec.json.encode(ReplyRecord(to="doctor/clock", replies=()))
            began_ms, began_s = system_ms(), time.monotonic()
            landed = await producer.send_and_wait(replies_topic(self._settings.prefix), value, partition=0)
            trip_ms = (time.monotonic() - began_s) * 1000
        finally:
            await producer.stop()
        off_ms = round(landed.timestamp - (began_ms + trip_ms / 2))
        numbers = {"off_ms": off_ms, "trip_ms": round(trip_ms)}
        told = f"the broker's clock is {abs(off_ms)} ms {'ahead of' if off_ms > 0 else 'behind'} this machine's"
        if abs(off_ms) <= max(CLOCK_MS, trip_ms):
            return [Finding("clock", "ok", told, numbers=numbers)]
        state: State = "failed" if abs(off_ms) >= MAX_CLOCK_AHEAD_MS else "warning"
        return [Finding("clock", state, told, "let both follow a time server (NTP)", numbers)]

    async def scheduler(self) -> Sequence[Finding]:
        """Somebody decides, and how many commands wait."""
        members = await self._offsets.members(scheduler_group(self._settings.prefix))
        waiting = [await self._undecided(number) for number in range(self._log.partitions)]
        return [_role("scheduler", members, waiting, "commands are not decided", "start one: dagbok scheduler")]

    async def _undecided(self, number: int) -> int:
        """Commands behind the one that the last record of `events` names. When that does not count, it is about so."""
        end = (await self._log.bounds(COMMANDS, number)).end
        events = (await self._log.bounds(EVENTS, number)).end
        last = await self._log.read(EVENTS, number, events - 1, 1) if events else ()
        parts = split_value(last[0].value) if last else None
        return max(0, end - (0 if parts is None else parts[0].command_offset + 1))

    async def served(self) -> Sequence[Finding]:
        """Somebody serves each pool, and how much was sent and is not taken up."""
        found: list[Finding] = []
        for lane in [lane_of(kind, pool) for pool in self._pools for kind in KINDS]:
            topic, group = lane_topic(self._settings.prefix, lane), lane_group(self._settings.prefix, lane)
            members = await self._offsets.members(group)
            done = await self._offsets.done(group)
            places = [Place(topic, number) for number in range(self._log.partitions)]
            bounds = await self._offsets.bounds(places)
            waiting = [bound.end - max(done.get(place, 0), bound.start) for place, bound in bounds.items()]
            role = "worker" if lane[0] == "work" else "verifier"
            told = "attempts are not taken up"
            advice = f"start one: dagbok {role} --pool {lane[1]} --import …"
            found.append(_role(topic.removeprefix(self._settings.prefix), members, waiting, told, advice))
        return found

    async def projector(self) -> Sequence[Finding]:
        """The tables can be read, somebody writes them, and how far they are behind."""
        members = await self._offsets.members(projector_group(self._settings.prefix))
        if self._database is None:
            told = "no database is named: nothing is known of the tables"
            return [Finding("projector", "ok", told, "--database, or DAGBOK_DATABASE", {"members": members})]
        stands = await asyncio.to_thread(_positions, self._database, self._log.partitions)
        ends = [(await self._log.bounds(EVENTS, number)).end for number in range(self._log.partitions)]
        waiting = [max(0, end - stand) for end, stand in zip(ends, stands, strict=True)]
        return [_role("projector", members, waiting, "records are not in the tables", "start one: dagbok projector")]


def _positions(database: str, partitions: int) -> Sequence[int]:
    tables = Tables.connect(database)
    try:
        return [Queries(tables).position(number).next_offset for number in range(partitions)]
    finally:
        tables.close()


def _role(what: str, members: int, waiting: Sequence[int], told: str, advice: str) -> Finding:
    """A role that nobody plays is wrong when something waits for it, and worth a word else."""
    lag = sum(waiting)
    numbers = {"members": members, "lag": lag, "partitions_behind": sum(each > 0 for each in waiting)}
    words = f"{members} processes, {lag} {told}"
    if members:
        return Finding(what, "ok", words, numbers=numbers)
    return Finding(what, "failed" if lag else "warning", words, advice, numbers)
