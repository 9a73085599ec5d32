"""What is wrong with a deployment on Kafka, as far as it can be seen from outside its processes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from importlib.metadata import version
from typing import Final

import msgspec
from aiokafka import AIOKafkaProducer

from dagbok.agents.doctor import standstill
from dagbok.agents.doctor.finding import Commands, Finding, State, plain, plural
from dagbok.agents.doctor.look import Look
from dagbok.agents.kafka.known import stands_of_tables
from dagbok.agents.kafka.looking import look_at_all
from dagbok.agents.kafka.names import lane_group, lane_topic, projector_group, replies_topic, scheduler_group
from dagbok.agents.kafka.offsets import Offsets
from dagbok.agents.kafka.replies import ReplyRecord
from dagbok.agents.queue.port import KINDS, Lane, lane_of
from dagbok.agents.scheduler.inbox import MAX_CLOCK_AHEAD_MS
from dagbok.events.errors import DagbokError, LogLost
from dagbok.events.log.clock import system_ms
from dagbok.events.log.kafka import KafkaLog
from dagbok.events.log.kafka_admin import administrator
from dagbok.events.log.kafka_client import Place
from dagbok.events.log.kafka_errors import FAILURES, explain
from dagbok.events.log.kafka_options import client_options
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.log.kafka_topics import check as differences
from dagbok.events.log.kafka_topics import declared
from dagbok.events.log.port import COMMANDS, EVENTS
from dagbok.events.places import commit_at
from dagbok.events.rule import Position
from dagbok.projections.reading import check_stand

PROGRAMS: Final = ("dagbok", "aiokafka", "faust-streaming")
CLOCK_MS: Final = 1_000
"""A clock that is off by more is worth a word; by `MAX_CLOCK_AHEAD_MS` a partition halts."""

GROUPS_S: Final = 15.0
"""A fresh broker has the groups that are asked for after a few seconds."""

Check = Callable[[], Awaitable[Sequence[Finding]]]


async def examine(
    settings: KafkaSettings,
    pools: Sequence[str],
    database: str | None,
    artifacts: str | None,
    command: Commands = plain,
) -> Sequence[Finding]:
    """All checks, the broker first: without one there are no others. `pools`: to look at, beside those that open
    attempts are in; `database`: of the tables, if there are any; `artifacts`: their place, where snapshots are too;
    `command`: how commands are advised."""
    versions = Finding("versions", "ok", ", ".join(f"{name} {version(name)}" for name in PROGRAMS))
    try:
        log = await KafkaLog.open(settings)
    except DagbokError as error:
        return [versions, Finding("broker", "failed", error.message, error.advice)]
    offsets = Offsets(settings, groups_s=GROUPS_S)
    try:
        broker = Finding(
            "broker", "ok", f"{settings.bootstrap_servers} answers", numbers={"partitions": log.partitions}
        )
        examination = _Examination(settings, log, offsets, pools, database, artifacts, command)
        found = [versions, broker]
        for name, check in (
            ("topics", examination.topics),
            ("clock", examination.clock),
            ("partitions", examination.partitions),
            ("scheduler", examination.scheduler),
            ("pools", examination.served),
            ("projector", examination.projector),
            ("standstill", examination.still),
        ):
            found += await _surely(name, check, settings)
        return found
    finally:
        await offsets.close()
        await log.close()


async def _surely(name: str, check: Check, settings: KafkaSettings) -> Sequence[Finding]:
    try:
        return await check()
    except (*FAILURES, DagbokError) as error:
        told = explain(error, settings.bootstrap_servers)
        return [Finding(name, "failed", told.message, told.advice)]


class _Examination:
    def __init__(
        self,
        settings: KafkaSettings,
        log: KafkaLog,
        offsets: Offsets,
        pools: Sequence[str],
        database: str | None,
        artifacts: str | None,
        command: Commands,
    ) -> None:
        self._settings, self._log, self._offsets = settings, log, offsets
        self._pools, self._database, self._artifacts = pools, database, artifacts
        self._command = command
        self._off_ms = 0
        self._looks: Sequence[Look] = ()

    @property
    def _now_ms(self) -> int:
        """The broker's time: deadlines count in it."""
        return system_ms() + self._off_ms

    async def topics(self) -> Sequence[Finding]:
        """They are as they have to be. Replication is the cluster's affair."""
        wanted = declared(self._settings.prefix, self._log.partitions, pools=self._pools)
        wrong = await differences(self._settings, wanted)
        if not wrong:
            return [Finding("topics", "ok", f"{len(wanted)} topics as they have to be")]
        create, check = self._command("topics create"), self._command("topics check")
        advice = f"{create} makes what is missing; {check} tells the rest"
        return [
            Finding("topics", "failed", f"{each.topic}: {each.what} is {each.found}, not {each.wanted}", advice)
            for each in wrong
        ]

    async def clock(self) -> Sequence[Finding]:
        """By a record that nobody waits for: the broker puts its time on it."""
        producer = AIOKafkaProducer(**client_options(self._settings), acks=1)
        try:
            await producer.start()
            value = msgspec.json.encode(ReplyRecord(to="doctor/clock", replies=()))
            began_ms, began_s = system_ms(), time.monotonic()
            landed = await producer.send_and_wait(replies_topic(self._settings.prefix), value, partition=0)
            trip_ms = (time.monotonic() - began_s) * 1000
        finally:
            await producer.stop()
        off_ms = round(landed.timestamp - (began_ms + trip_ms / 2))
        self._off_ms = off_ms
        numbers = {"off_ms": off_ms, "trip_ms": round(trip_ms)}
        told = f"the broker's clock is {abs(off_ms)} ms {'ahead of' if off_ms > 0 else 'behind'} this machine's"
        if abs(off_ms) <= max(CLOCK_MS, trip_ms):
            return [Finding("clock", "ok", told, numbers=numbers)]
        state: State = "failed" if abs(off_ms) >= MAX_CLOCK_AHEAD_MS else "warning"
        return [Finding("clock", state, told, "let both follow a time server (NTP)", numbers)]

    async def partitions(self) -> Sequence[Finding]:
        """A scheduler could decide for each."""
        self._looks = await look_at_all(self._settings, self._log, self._artifacts, self._now_ms)
        return standstill.halted(self._looks, self._log.partitions, self._command)

    async def still(self) -> Sequence[Finding]:
        """What waits for somebody, or for nothing, in the log itself. Of a partition that halts nothing is known."""
        if not self._looks:
            return ()  # they could not be read, which is said already
        late = "its partition has no scheduler, or one that is behind: see what is said of them above"
        return [
            *standstill.keys(self._looks, self._now_ms, self._start),
            *standstill.deadlines(self._looks, self._now_ms, late),
            *standstill.paused(self._looks, self._now_ms, self._command),
        ]

    def _start(self, role: str, pool: str | None = None) -> str:
        return f"start one: {self._command(role, *([f'--pool {pool}', '--import …'] if pool is not None else []))}"

    async def scheduler(self) -> Sequence[Finding]:
        """Somebody decides, and how many commands wait."""
        members = await self._offsets.members(scheduler_group(self._settings.prefix))
        waiting = [await self._undecided(number) for number in range(self._log.partitions)]
        return [_role("scheduler", members, waiting, "commands are not decided", self._start("scheduler"))]

    async def _undecided(self, number: int) -> int:
        """Commands behind the one that the last record of `events` names. When that does not count, it is about so."""
        end = (await self._log.bounds(COMMANDS, number)).end
        events = (await self._log.bounds(EVENTS, number)).end
        parts = await commit_at(self._log, number, events - 1)
        return max(0, end - (0 if parts is None else parts[0].command_offset + 1))

    async def served(self) -> Sequence[Finding]:
        """Somebody serves each pool, and how much was sent and is not taken up."""
        waits = standstill.keys_of(self._looks)
        pools = dict.fromkeys([*self._pools, *sorted(pool for (_, pool), _ in waits)])
        lanes = [lane_of(kind, pool) for pool in pools for kind in KINDS]
        async with administrator(self._settings) as admin:
            there = await admin.topics([lane_topic(self._settings.prefix, lane) for lane in lanes])
        return [
            await self._lane(lane, waits, is_there=lane_topic(self._settings.prefix, lane) in there)
            for lane in lanes
            if lane[1] in self._pools or standstill.waiting_in(waits, lane, 0)[0]
        ]

    async def _lane(self, lane: Lane, waits: standstill.Waits, *, is_there: bool) -> Finding:
        topic, group = lane_topic(self._settings.prefix, lane), lane_group(self._settings.prefix, lane)
        members = await self._offsets.members(group)
        sent = await self._sent(topic, group) if is_there else [0]
        count, oldest_s, open_told = standstill.waiting_in(waits, lane, self._now_ms)
        advice = self._start(standstill.ROLE[lane[0]], lane[1])
        told = "attempts are not taken up" + (f"; {open_told}" if count else "")
        name = topic.removeprefix(self._settings.prefix)
        found = _role(name, members, sent, told, advice, waiting=count)
        numbers = {**found.numbers, "open": count, "oldest_s": oldest_s}
        return msgspec.structs.replace(found, numbers=numbers, about={"kind": lane[0], "pool": lane[1]})

    async def _sent(self, topic: str, group: str) -> Sequence[int]:
        """What lies in the topic and nobody has acknowledged, by partition."""
        done = await self._offsets.done(group)
        places = [Place(topic, number) for number in range(self._log.partitions)]
        bounds = await self._offsets.bounds(places)
        return [bound.end - max(done.get(place, 0), bound.start) for place, bound in bounds.items()]

    async def projector(self) -> Sequence[Finding]:
        """The tables can be read, somebody writes them, and how far they are behind."""
        members = await self._offsets.members(projector_group(self._settings.prefix))
        if self._database is None:
            told = "no database is named: nothing is known of the tables"
            return [Finding("projector", "ok", told, "--database, or DAGBOK_DATABASE", {"members": members})]
        stands = await asyncio.to_thread(stands_of_tables, self._database, range(self._log.partitions))
        ends = [(await self._log.bounds(EVENTS, number)).end for number in range(self._log.partitions)]
        behind = [max(0, end - stand.next_offset) for end, stand in zip(ends, stands, strict=True)]
        found = _role("projector", members, behind, "records are not in the tables", self._start("projector"))
        return [found, *[wrong for number, stand in enumerate(stands) if (wrong := await self._tables(number, stand))]]

    async def _tables(self, number: int, stand: Position) -> Finding | None:
        """The tables were built from this log."""
        try:
            await check_stand(self._log, number, stand)
        except LogLost as error:
            told = f"halts at partition {number}: {error.message} ({error.code})"
            return Finding("projector", "failed", told, error.advice, about={"partition": number})
        return None


def _role(what: str, members: int, behind: Sequence[int], told: str, advice: str, *, waiting: int = 0) -> Finding:
    """A role that nobody plays is wrong when something waits for it, and worth a word else. `waiting`: what waits and
    is not among what it is `behind`."""
    lag = sum(behind)
    numbers = {"members": members, "lag": lag, "partitions_behind": sum(each > 0 for each in behind)}
    words = f"{plural(members, 'process')}, {lag} {told}"
    if members:
        return Finding(what, "ok", words, numbers=numbers)
    return Finding(what, "failed" if lag or waiting else "warning", words, advice, numbers)
