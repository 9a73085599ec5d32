"""Roles as processes of their own, as a deployment starts them, and what a test asks of them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import aiohttp
import msgspec

from dagbok.agents.kafka.process import KafkaProcess
from dagbok.agents.workers.definitions import Registry
from dagbok.events.body import decode_body
from dagbok.events.envelope import Sender, run_command
from dagbok.events.ids import partition_of, run_id, run_stream
from dagbok.events.log import kafka_topics as topics
from dagbok.events.log.clock import system_ms
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.rule import GENESIS
from dagbok.events.run.events import Event
from dagbok.events.run.values import Pinned
from dagbok.events.specs import TaskSpec
from dagbok.projections.reading import read_effective
from dagbok.starting import start_command
from tests.kafka_roles import serving_module
from tests.servers.kafka_topics import fresh_prefix, settings_of

PARTITIONS = 2
TIMEOUT_S = 90.0
"""Longer than it takes until a dispatch that was lost is sent again."""
SESSION_S = 1.5
MODULE = Path(serving_module.__file__)
DAGBOK = (sys.executable, "-m", "dagbok")
Line = Mapping[str, Any]


class Done(NamedTuple):
    """What came of a command."""

    status: int
    out: str
    told: str

    def json(self) -> Any:
        """What it has printed."""
        return msgspec.json.decode(self.out)


class Role:
    """A process. `lines` is what it has logged."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self.name, self.process = name, process
        self.lines: list[Line] = []
        self.unlogged: list[str] = []
        self._grown = asyncio.Condition()
        self._reading = asyncio.create_task(self._read())

    async def logged(self, event: str, **fields: object) -> Line:
        """Wait for a line of its log."""
        wanted = {"event": event, **fields}
        async with asyncio.timeout(TIMEOUT_S), self._grown:
            while True:
                for line in self.lines:
                    if wanted.items() <= line.items():
                        return line
                if self._reading.done():
                    raise AssertionError(f"{self.name} ended without {wanted}: {self.lines} {self.unlogged}")
                await self._grown.wait()

    async def said(self, words: str) -> None:
        """Wait for a line, beside its log, that has these words."""
        async with asyncio.timeout(TIMEOUT_S), self._grown:
            await self._grown.wait_for(lambda: any(words in line for line in self.unlogged))

    async def get(self, path: str) -> tuple[int, str]:
        """What it serves by HTTP: status and body."""
        port = (await self.logged("health.serving"))["port"]
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as answer:
            return answer.status, await answer.text()

    async def told(self, path: str, status: int) -> Mapping[str, Any]:
        """Its health, as soon as the answer has this status."""
        async with asyncio.timeout(TIMEOUT_S):
            while (found := await self.get(path))[0] != status:  # noqa: ASYNC110 – it can only be asked
                await asyncio.sleep(0.1)
        return msgspec.json.decode(found[1], type=dict[str, Any])

    async def metric(self, sample: str, least: float) -> float:
        """The value of a sample, name and labels as in the text format, as soon as it is so high."""
        async with asyncio.timeout(TIMEOUT_S):
            while True:
                found = {line.rpartition(" ")[0]: line for line in (await self.get("/metrics"))[1].splitlines()}
                value = float(found[sample].rpartition(" ")[2]) if sample in found else -1.0
                if value >= least:
                    return value
                await asyncio.sleep(0.1)

    async def stopped(self, number: int = signal.SIGTERM) -> int:
        """Send it a signal, and wait for its end: its exit status."""
        self.process.send_signal(number)
        return await self.ended()

    async def ended(self) -> int:
        """Wait for its end: its exit status."""
        async with asyncio.timeout(TIMEOUT_S):
            await self._reading
            return await self.process.wait()

    async def kill(self) -> None:
        """At once, if it runs still."""
        if self.process.returncode is None:
            self.process.kill()
        await self.ended()

    async def _read(self) -> None:
        assert self.process.stderr is not None
        async for raw in self.process.stderr:
            async with self._grown:
                try:
                    self.lines.append(msgspec.json.decode(raw, type=dict[str, Any]))
                except msgspec.MsgspecError:
                    self.unlogged.append(raw.decode())
                self._grown.notify_all()
        async with self._grown:
            self._grown.notify_all()


class RoleSite:
    """Topics of its own, a folder for artifacts, and the processes that were started. `kafka` may be set to another
    broker before that."""

    def __init__(self, folder: Path) -> None:
        self.kafka: KafkaSettings = settings_of(fresh_prefix())
        self.folder = folder
        self._roles: list[Role] = []
        self._client: KafkaProcess | None = None

    async def create_topics(self, pools: Sequence[str] = topics.POOLS) -> None:
        await topics.create(self.kafka, topics.declared(self.kafka.prefix, PARTITIONS, pools=pools))

    async def start(self, *arguments: str, program: Sequence[str] = DAGBOK, **variables: str) -> Role:
        """`dagbok` with these arguments. `variables` are set beside those of the site; `program`: what calls it."""
        process = await asyncio.create_subprocess_exec(
            *program, *arguments, env=self._environment(variables), stderr=asyncio.subprocess.PIPE
        )
        role = Role(arguments[0], process)
        self._roles.append(role)
        return role

    async def command(self, *arguments: str, **variables: str) -> Done:
        """A command that ends, on Kafka."""
        process = await asyncio.create_subprocess_exec(
            *DAGBOK,
            *arguments,
            "--kafka",
            self.kafka.bootstrap_servers,
            env=self._environment(variables),
            cwd=self.folder,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(TIMEOUT_S):
            out, told = await process.communicate()
        return Done(process.returncode or 0, out.decode(), told.decode())

    async def listed(self, run: str, status: str, **variables: str) -> None:
        """Wait until the tables have a run with this status."""
        async with asyncio.timeout(TIMEOUT_S):
            while True:
                rows = (await self.command("ls", "--json", **variables)).json()
                if (run, status) in [(row["run"], row["status"]) for row in rows]:
                    return

    def _environment(self, variables: Mapping[str, str]) -> Mapping[str, str]:
        return {name: value for name, value in os.environ.items() if not name.startswith("DAGBOK_")} | {
            "DAGBOK_KAFKA_BOOTSTRAP_SERVERS": self.kafka.bootstrap_servers,
            "DAGBOK_KAFKA_PREFIX": self.kafka.prefix,
            "DAGBOK_ARTIFACTS": str(self.folder / "artifacts"),
            "DAGBOK_SESSION_S": str(SESSION_S),
            "DAGBOK_LOG_FORMAT": "json",
            **variables,
        }

    async def run(self, key: str, tasks: Sequence[TaskSpec], of: ModuleType = serving_module) -> str:
        """Start a run of the workers and verifiers of a module; its stream."""
        client = await self.client()
        run = run_id("acme", "docs", key)
        registry = Registry()
        registry.add_from(of)
        command = start_command(run, tasks, Pinned(registry.pins()), pool="default", user="ann")
        sender = Sender("acme", "docs", "user:ann")
        answer = await client.ask(run_command(sender, run_stream(run), command, id=key, now_ms=system_ms()))
        assert answer.accepted, answer.reason
        return run_stream(run)

    async def seen(self, stream: str, wanted: type[Event]) -> Sequence[Event]:
        """Wait until the log has an event of a run: all events of the run to that one."""
        log = (await self.client()).log
        partition, position, found = partition_of(stream, PARTITIONS), GENESIS, list[Event]()
        async with asyncio.timeout(TIMEOUT_S):
            while not any(isinstance(event, wanted) for event in found):
                position, commits = await read_effective(log, partition, position, 1_000)
                for commit in commits:
                    if commit.seal.stream == stream:
                        found += decode_body(commit.stored_body, commit.seal.codec, commit.seal.raw_size)
                if not commits:
                    await log.wait("events", partition, position.next_offset)
        return found

    async def client(self) -> KafkaProcess:
        """A process that asks."""
        if self._client is None:
            folder = str(self.folder / "artifacts")
            self._client = await KafkaProcess.open(self.kafka, folder, Registry(), session_s=SESSION_S)
        return self._client

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
        await asyncio.gather(*(role.kill() for role in self._roles))
