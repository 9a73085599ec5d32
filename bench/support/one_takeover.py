"""One takeover on Kafka, measured: two schedulers, one partition, and a SIGKILL."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from bench.support import workload
from bench.support.demo_roles import Place, RoleProcess
from dagbok import TaskSpec
from dagbok.agents.workers.definitions import Registry
from dagbok.events.body import decode_body
from dagbok.events.budgets import Limits
from dagbok.events.envelope import Sender, command_record, run_command
from dagbok.events.ids import run_id, run_stream
from dagbok.events.log import kafka_topics as topics
from dagbok.events.log.clock import system_ms
from dagbok.events.log.kafka import KafkaLog
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.log.port import COMMANDS, EVENTS, Record, StoredRecord
from dagbok.events.rule import GENESIS
from dagbok.events.run.commands import PauseRun, RunCommand, StartAttempt
from dagbok.events.run.events import AttemptStarted
from dagbok.events.run.values import Claim, Pinned
from dagbok.projections.reading import read_effective
from dagbok.starting import start_command

SENDER: Final = Sender("bench", "bench", "user:bench")
RUN_TASKS: Final = 1_000
"""A run has so many open attempts at most."""

LEASE_S: Final = 3_600.0
BATCH: Final = 1_000
GIVE_UP_S: Final = 300.0


class Takeover(msgspec.Struct, frozen=True):
    """See `docs/performance.md`. Times begin with the SIGKILL, each part where the one before ends."""

    takeover_s: float
    behind_session_s: float
    assigned_s: float
    fold_s: float
    first_commit_s: float
    events: int


async def measure(bootstrap: str, folder: Path, tasks: int, session_s: float) -> Takeover:
    """Do it with topics of its own. Raises `RuntimeError` when it does not go as it should."""
    settings = KafkaSettings(bootstrap_servers=bootstrap, prefix=f"bench{secrets.token_hex(4)}.")
    await topics.create(settings, topics.declared(settings.prefix, 1))
    log = await KafkaLog.open(settings)
    schedulers: list[RoleProcess] = []
    try:
        async with asyncio.timeout(GIVE_UP_S):
            for number in (1, 2):
                schedulers.append(
                    await RoleProcess.start(f"scheduler {number}", Place(settings, folder, session_s), "scheduler")
                )
            for scheduler in schedulers:
                await scheduler.ready()
            await _at_work(log, tasks)
            return await _take_over(log, schedulers, session_s)
    finally:
        await asyncio.gather(*(scheduler.end() for scheduler in schedulers))
        await log.close()


async def _take_over(log: KafkaLog, schedulers: Sequence[RoleProcess], session_s: float) -> Takeover:
    last = await _last(log)
    owner = next((each for each in schedulers if each.process == last.headers["writer"]), None)
    if owner is None:
        raise RuntimeError("nobody has said that it owns the partition")
    (heir,) = (each for each in schedulers if each is not owner)
    heir.at_s.clear()
    killed_s = time.monotonic()
    await owner.kill()
    await log.append(COMMANDS, 0, [_record(_stream(0), PauseRun(reason="the owner is gone"), "pause")])
    await log.wait(EVENTS, 0, last.offset + 1)
    done_s = time.monotonic()
    first = await _last(log)
    await heir.said("partition.owned")
    if first.headers["writer"] != heir.process or first.offset != last.offset + 1:
        raise RuntimeError("the first commit is not that of the other scheduler")
    assigned_s, owned_s = heir.at_s["group.assigned"], heir.at_s["partition.owned"]
    return Takeover(
        takeover_s=done_s - killed_s,
        behind_session_s=done_s - killed_s - session_s,
        assigned_s=assigned_s - killed_s,
        fold_s=owned_s - assigned_s,
        first_commit_s=done_s - owned_s,
        events=first.offset,
    )


async def _at_work(log: KafkaLog, tasks: int) -> None:
    """Start runs, claim each attempt, and see it all decided and accepted."""
    commands = iter([*_starts(tasks), *_claims(tasks)])
    while batch := list(islice(commands, BATCH)):
        await log.append(COMMANDS, 0, batch)
    sent = (await log.bounds(COMMANDS, 0)).end
    while (end := (await log.bounds(EVENTS, 0)).end) < sent:
        await log.wait(EVENTS, 0, end)
    started, position = 0, GENESIS
    while position.next_offset < end:
        position, commits = await read_effective(log, 0, position, BATCH)
        for commit in commits:
            events = decode_body(commit.stored_body, commit.seal.codec, commit.seal.raw_size)
            started += sum(isinstance(event, AttemptStarted) for event in events)
    if started != tasks:
        raise RuntimeError(f"{started} of {tasks} attempts could be claimed")


def _starts(tasks: int) -> Iterator[Record]:
    registry = Registry()
    for definition in workload.definitions():
        registry.add(definition)
    pinned = Pinned(registry.pins())
    for first in range(0, tasks, RUN_TASKS):
        specs = [
            TaskSpec(id=f"task-{n}", goal=f"task {n}", worker="no-op", verifier="always", lease_s=LEASE_S)
            for n in range(first, min(first + RUN_TASKS, tasks))
        ]
        command = start_command(
            _run(first), specs, pinned, pool="default", user="bench", limits=Limits(max_tasks=RUN_TASKS)
        )
        yield _record(_stream(first), command, f"start-{first}")


def _claims(tasks: int) -> Iterator[Record]:
    for n in range(tasks):
        command = StartAttempt(task=f"task-{n}", epoch=1, claim=Claim("bench", n, secrets.token_hex(8)))
        yield _record(_stream(n), command, f"claim-{n}")


def _run(task: int) -> str:
    return run_id(SENDER.tenant, SENDER.project, f"run-{task // RUN_TASKS}")


def _stream(task: int) -> str:
    return run_stream(_run(task))


def _record(stream: str, command: RunCommand, id: str) -> Record:
    return command_record(run_command(SENDER, stream, command, id=id, now_ms=system_ms()))


async def _last(log: KafkaLog) -> StoredRecord:
    end = (await log.bounds(EVENTS, 0)).end
    return (await log.read(EVENTS, 0, end - 1, 1))[-1]
