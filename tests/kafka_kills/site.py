"""A cluster with topics of its own, its members, and a client that starts runs and follows the log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from dagbok import TaskSpec
from dagbok.agents.kafka.process import KafkaProcess
from dagbok.agents.workers.definitions import Registry
from dagbok.events.body import decode_body
from dagbok.events.envelope import Answer, Sender, run_command
from dagbok.events.errors import LogError
from dagbok.events.ids import partition_of, run_id, run_stream
from dagbok.events.log import kafka_topics as topics
from dagbok.events.log.clock import system_ms
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.rule import GENESIS, Position
from dagbok.events.run import events as e
from dagbok.events.run.commands import RunCommand
from dagbok.events.run.values import Pinned
from dagbok.projections.reading import read_effective
from dagbok.starting import start_command
from tests.kafka_kills.member import SESSION_S
from tests.kafka_kills.members import Member
from tests.kafka_kills.workload import definitions, job
from tests.servers.kafka_topics import fresh_prefix
from tests.support.places import Place

TIMEOUT_S = 90.0
PAUSE_S = 0.1
SERVING = "worker,verifier"
EVERYBODY = f"scheduler,{SERVING}"
ENDS = (e.RunSucceeded, e.RunFailed, e.RunCancelled, e.RunBlocked)


class Site:
    """`ends` and `verified` are what the log says, by stream, as far as it was followed."""

    def __init__(self, settings: KafkaSettings, folder: Path, place: Place, process: KafkaProcess) -> None:
        self.settings, self.folder, self.place, self.process = settings, folder, place, process
        self.partitions = process.log.partitions
        self.members: list[Member] = []
        self.ends: dict[str, e.Event] = {}
        self.verified: dict[str, int] = {}
        self._positions: dict[int, Position] = dict.fromkeys(range(self.partitions), GENESIS)
        self._moved = asyncio.Condition()
        self._ids = 0

    async def add(self, roles: str, **environment: str) -> Member:
        """A member that is ready."""
        member = await self.begin(roles, **environment)
        async with asyncio.timeout(TIMEOUT_S):
            await member.says("ready")
        return member

    async def begin(self, roles: str, **environment: str) -> Member:
        """A member that is starting."""
        settings, environment = self.settings, {"MEMBER_TABLES": self.place.address(), **environment}
        member = await Member.begin(settings.bootstrap_servers, settings.prefix, self.folder, roles, **environment)
        self.members.append(member)
        return member

    async def held(self, member: Member, role: str = "scheduler") -> set[int]:
        """What it has of partitions."""
        return set(await member.ask(partitions=role))

    async def shared(self, role: str) -> None:
        """Wait until those that play a role have all partitions among them, and each has some."""
        held: list[set[int]] = []
        try:
            async with asyncio.timeout(TIMEOUT_S):
                while not (all(held) and sorted(n for some in held for n in some) == list(range(self.partitions))):
                    held = await asyncio.gather(*[self.held(member, role) for member in self.of(role)])
                    await asyncio.sleep(PAUSE_S)
        except TimeoutError:
            raise AssertionError(f"{role}: they hold {held}; see {self.folder}/*.log") from None

    async def leave(self, member: Member) -> None:
        """It ends in order, and is no member any more."""
        self.members.remove(member)
        await member.leave()

    async def kill(self, member: Member) -> None:
        """It is gone, and no member any more."""
        assert member.alive, f"it has ended by itself: see {member.log}"
        self.members.remove(member)
        await member.kill()

    def of(self, role: str) -> list[Member]:
        """Those that play a role."""
        return [member for member in self.members if role in member.roles]

    async def start(self, key: str, tasks: Sequence[TaskSpec] = (), *, tenant: str = "acme") -> str:
        """Start a run; its stream."""
        run = run_id(tenant, "docs", key)
        pins = _registry().pins()
        command = start_command(run, tasks or job(), Pinned(pins), pool="default", user="ann")
        answer = await self.ask(run_stream(run), command, tenant=tenant)
        assert answer.accepted, answer
        return run_stream(run)

    def stream_of(self, key: str, tenant: str = "acme") -> str:
        """The stream of the run that `start` starts by this key."""
        return run_stream(run_id(tenant, "docs", key))

    async def ask(self, stream: str, command: RunCommand, *, tenant: str = "acme") -> Answer:
        """Have a command decided."""
        self._ids += 1
        sender = Sender(tenant, "docs", "user:ann")
        return await self.process.ask(
            run_command(sender, stream, command, id=f"{tenant}-c{self._ids}", now_ms=system_ms())
        )

    async def ended(self, streams: Sequence[str]) -> None:
        """Wait until all of these have ended, each well."""
        try:
            async with asyncio.timeout(TIMEOUT_S), self._moved:
                await self._moved.wait_for(lambda: all(stream in self.ends for stream in streams))
        except TimeoutError:
            left = [f"{s} in {partition_of(s, self.partitions)}: {self.verified.get(s)} verified" for s in streams]
            raise AssertionError(f"runs do not end: {left}; see {self.folder}/*.log") from None
        assert [type(self.ends[stream]).__name__ for stream in streams] == ["RunSucceeded"] * len(streams)

    async def seen(self, stream: str, verified: int) -> None:
        """Wait until so many tasks of a run are verified."""
        async with asyncio.timeout(TIMEOUT_S), self._moved:
            await self._moved.wait_for(lambda: self.verified.get(stream, 0) >= verified)

    async def more_ended(self, runs: int) -> None:
        """Wait until so many runs more than now have ended."""
        wanted = len(self.ends) + runs
        async with asyncio.timeout(TIMEOUT_S), self._moved:
            await self._moved.wait_for(lambda: len(self.ends) >= wanted)

    async def follow(self, partition: int) -> None:
        """Read a partition of `events` for ever, whatever becomes of the broker."""
        log = self.process.log
        while True:
            try:
                await self._read(partition)
                await log.wait("events", partition, self._positions[partition].next_offset)
            except LogError:
                await asyncio.sleep(PAUSE_S)

    async def _read(self, partition: int) -> None:
        while True:
            position, commits = await read_effective(
                self.process.log, partition, self._positions[partition], 1_000
            )  # fmt: skip
            if position == self._positions[partition]:
                return
            self._positions[partition] = position
            for commit in commits:
                stream = commit.seal.stream or ""
                for event in decode_body(commit.stored_body, commit.seal.codec, commit.seal.raw_size):
                    if isinstance(event, ENDS):
                        self.ends[stream] = event
                    self.verified[stream] = self.verified.get(stream, 0) + isinstance(event, e.TaskVerified)
            async with self._moved:
                self._moved.notify_all()


def _registry() -> Registry:
    registry = Registry()
    for definition in definitions():
        registry.add(definition)
    return registry


@asynccontextmanager
async def open_site(bootstrap: str, folder: Path, place: Place, partitions: int = 4) -> AsyncIterator[Site]:
    """Topics, a client and no members. All members that are left at the end are killed."""
    settings = KafkaSettings(bootstrap_servers=bootstrap, prefix=fresh_prefix())
    await topics.create(settings, topics.declared(settings.prefix, partitions))
    process = await KafkaProcess.open(settings, str(folder), Registry(), session_s=SESSION_S)
    site = Site(settings, folder, place, process)
    followers = [asyncio.create_task(site.follow(number)) for number in range(partitions)]
    try:
        yield site
        assert not process.failure.done(), process.failure.result()
        assert [member for member in site.members if not member.alive] == [], f"see {folder}/*.log"
    finally:
        for follower in followers:
            follower.cancel()
        await asyncio.gather(*followers, return_exceptions=True)
        for member in site.members:
            await member.kill()
        await process.close()
