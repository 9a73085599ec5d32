"""Commands made to break an owner: each offset gets one commit, the next command is decided, and the state is the fold
of the log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import orjson
import pytest

from dagbok.agents.scheduler import execute
from dagbok.agents.scheduler.decide import By, decide
from dagbok.agents.scheduler.recover import NoSnapshots, Recovery
from dagbok.events.body import decode_body
from dagbok.events.codes import Code
from dagbok.events.envelope import Command, Sender, command_record, run_command
from dagbok.events.log.memory import MemoryLog
from dagbok.events.log.port import COMMANDS, EVENTS, Record
from dagbok.events.rule import GENESIS
from dagbok.events.run.commands import PauseRun, ResumeRun, RunCommand
from dagbok.events.run.events import CommandRefused, Event
from dagbok.projections.reading import read_effective
from dagbok.projections.task_graph.evolve import evolve
from dagbok.projections.task_graph.state import At, RunState
from dagbok.testing import start, task
from tests.simulation.owners import Outlet, RunningOwner
from tests.support.logbuilder import SENDER, START_MS
from tests.support.snapshotting import image

RIVAL = Sender("rival", "docs", "user:eve")
DAY_MS = 24 * 3600 * 1000
TIMEOUT_S = 20.0


def envelope(
    command: RunCommand = PauseRun(),  # noqa: B008 - immutable
    *,
    run: str = "run-1",
    sender: Sender = SENDER,
    id: str = "poison",
    at_ms: int = START_MS,
) -> Command:
    """A command as a client sends it."""
    return run_command(sender, f"run:{run}", command, id=id, now_ms=at_ms)


def changed(**fields: object) -> bytes:
    """The bytes of a valid command with other fields in its envelope."""
    return orjson.dumps({**orjson.loads(command_record(envelope()).value), **fields})


DEEP = b'{"a":' * 20_000 + b"1" + b"}" * 20_000
POISON: dict[str, tuple[bytes, Code]] = {
    "nothing": (b"", Code.UNDECODABLE),
    "bytes": (bytes(range(256)), Code.UNDECODABLE),
    "no object": (b"[1,2,3]", Code.UNDECODABLE),
    "half an object": (changed()[:-7], Code.UNDECODABLE),
    "no UTF-8": (changed(id="x").replace(b'"x"', b'"\xff"'), Code.UNDECODABLE),
    "half a character": (changed(id="x").replace(b'"x"', b'"\\ud800"'), Code.UNDECODABLE),
    "deep envelope": (DEEP, Code.UNDECODABLE),
    "deep data": (changed(data=None).replace(b'"data":null', b'"data":' + DEEP), Code.UNDECODABLE),
    "a long id": (changed(id="x" * 100_000), Code.UNDECODABLE),
    "no id": (changed(id=""), Code.UNDECODABLE),
    "long together": (
        changed(**dict.fromkeys(("type", "id", "tenant", "project", "stream", "actor", "cause"), "\x01" * 300)),
        Code.UNDECODABLE,
    ),
    "a tenant with a slash": (changed(tenant="acme/docs"), Code.IDENTITY_REQUIRED),
    "no tenant": (changed(tenant=""), Code.IDENTITY_REQUIRED),
    "an unknown type": (changed(type="MakeCoffee"), Code.UNSUPPORTED),
    "a newer command": (changed(version=99), Code.UNSUPPORTED),
    "a newer envelope": (changed(v=99), Code.UNSUPPORTED),
    "another kind of stream": (changed(stream="action:abc"), Code.UNSUPPORTED),
    "a stream that is a path": (changed(stream="run:../../etc"), Code.UNDECODABLE),
    "data of another type": (changed(data={"reason": 5}), Code.UNDECODABLE),
    "an enormous time": (changed(first_sent_ms=2**63), Code.UNDECODABLE),
    "a negative time": (changed(first_sent_ms=-1), Code.UNDECODABLE),
    "from yesterday's week": (changed(first_sent_ms=START_MS - 4 * DAY_MS), Code.TOO_OLD),
    "from tomorrow": (changed(first_sent_ms=START_MS + DAY_MS), Code.CLOCK_AHEAD),
    "another tenant": (command_record(envelope(sender=RIVAL)).value, Code.NOT_FOUND),
    "another project": (changed(project="other"), Code.NOT_FOUND),
    "a start over another tenant's run": (
        command_record(envelope(start(task("a")), sender=RIVAL)).value,
        Code.NOT_FOUND,
    ),
    "an unknown run": (changed(stream="run:none"), Code.NOT_FOUND),
}


@pytest.mark.parametrize("name", POISON)
async def test_poison_is_refused_and_the_next_command_is_decided(name: str) -> None:
    value, code = POISON[name]
    async with partition() as log:
        await decided(log, value)
        refusal, after = await last_two(log, command_record(envelope(id="after")).value)
    assert (refusal.code, bool(refusal.reason), bool(refusal.advice)) == (code, True, True)
    assert type(after).__name__ == "RunPaused"


async def test_poison_of_a_foreign_tenant_says_no_more_than_an_unknown_run() -> None:
    async with partition() as log:
        foreign = await decided(log, command_record(envelope(sender=RIVAL, id="one")).value)
        unknown = await decided(log, command_record(envelope(sender=RIVAL, run="run-2", id="two")).value)
    assert isinstance(foreign, CommandRefused)
    assert isinstance(unknown, CommandRefused)
    assert foreign.reason == unknown.reason.replace("run-2", "run-1")


async def test_all_poison_in_one_batch() -> None:
    async with partition() as log:
        records = [Record("", value) for value, _ in POISON.values()]
        await log.append(COMMANDS, 0, [*records, command_record(envelope(id="after"))])


async def test_a_wrong_partition_is_refused() -> None:
    log = MemoryLog(partitions=7, clock=lambda: START_MS)
    owner = RunningOwner(log, Outlet(), 1)
    for number in range(7):
        record = command_record(envelope(start(task("a")), run=f"run-{number}", id=f"start-{number}"))
        await log.append(COMMANDS, 0, [record])
    async with asyncio.timeout(TIMEOUT_S):
        await owner.decided(6)
    await owner.stop()
    events = await effective(log)
    assert {event.code for event in events if isinstance(event, CommandRefused)} == {Code.WRONG_PARTITION}


Breaks = Callable[[pytest.MonkeyPatch], None]


def breaking_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A decider with a mistake that shows after its first event."""

    def broken(run: RunState, command: RunCommand, by: By) -> Iterator[Event]:
        for event in decide(run, command, by):
            yield event
            if by.command_id.startswith("poison"):
                raise ZeroDivisionError("a mistake")

    monkeypatch.setattr(execute, "decide", broken)


def breaking_evolve(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fold that fails half-way."""

    def broken(run: RunState, event: Event, at: At) -> None:
        evolve(run, event, at)
        if at.command_id.startswith("poison"):
            raise KeyError("a mistake")

    monkeypatch.setattr(execute, "evolve", broken)


@pytest.mark.parametrize("breaks", [breaking_decide, breaking_evolve])
async def test_a_command_that_breaks_the_state_is_refused_alone(
    breaks: Breaks, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks(monkeypatch)
    sent = [
        envelope(PauseRun(), id="before"),
        envelope(ResumeRun(), id="poison-1"),
        envelope(ResumeRun(), id="between"),
        envelope(start(task("b")), run="run-2", id="poison-2"),
        envelope(PauseRun(), id="poison-3"),
        envelope(start(task("b")), run="run-2", id="after"),
    ]
    async with partition() as log:
        await log.append(COMMANDS, 0, [command_record(command) for command in sent])
    commits = (await read_effective(log, 0, GENESIS, 100))[1]
    firsts = [decode_body(commit.stored_body, commit.seal.codec, commit.seal.raw_size)[0] for commit in commits]
    refused = {
        commit.seal.command_id: first.code
        for commit, first in zip(commits, firsts, strict=True)
        if isinstance(first, CommandRefused)
    }
    assert refused == dict.fromkeys(("poison-1", "poison-2", "poison-3"), Code.INTERNAL_ERROR)


async def test_a_commit_above_the_limit_is_refused_as_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dagbok.events.body.MAX_RAW_BYTES", 50_000)
    async with partition() as log:
        large = start(*[task(f"task-{number}", goal="x" * 500) for number in range(200)])
        refusal = await decided(log, command_record(envelope(large, run="run-2")).value)
    assert isinstance(refusal, CommandRefused)
    assert refusal.code == Code.TOO_LARGE


@asynccontextmanager
async def partition() -> AsyncIterator[MemoryLog]:
    """A log with an owner and one run, `run-1` of acme. At the end every command is decided once, and the owner's state
    is the fold of the log."""
    log = MemoryLog(clock=lambda: START_MS)
    running = RunningOwner(log, Outlet(), 1)
    await log.append(COMMANDS, 0, [command_record(envelope(start(task("a")), id="start"))])
    try:
        yield log
        end = (await log.bounds(COMMANDS, 0)).end
        if (await log.bounds(COMMANDS, 0)).start == 0:
            async with asyncio.timeout(TIMEOUT_S):
                await running.decided(end - 1)
            assert await command_offsets(log) == list(range(end))
            assert image(running.owner.state) == image(await Recovery(log, 0, NoSnapshots(0)).fold())
    finally:
        await running.stop()


async def decided(log: MemoryLog, value: bytes) -> Event:
    """Send bytes as a command; the first event that they cause."""
    offset = await log.append(COMMANDS, 0, [Record("whatever", value)])
    async with asyncio.timeout(TIMEOUT_S):
        while len(await command_offsets(log)) <= offset:
            await log.wait(EVENTS, 0, (await log.bounds(EVENTS, 0)).end)
    commit = (await read_effective(log, 0, GENESIS, 1_000))[1][offset]
    return decode_body(commit.stored_body, commit.seal.codec, commit.seal.raw_size)[0]


async def last_two(log: MemoryLog, value: bytes) -> tuple[CommandRefused, Event]:
    """The refusal of the last command, and the first event of one more."""
    commit = (await read_effective(log, 0, GENESIS, 1_000))[1][-1]
    refusal = decode_body(commit.stored_body, commit.seal.codec, commit.seal.raw_size)[0]
    assert isinstance(refusal, CommandRefused)
    return refusal, await decided(log, value)


async def command_offsets(log: MemoryLog) -> list[int]:
    """Of every effective commit, in order."""
    return [commit.seal.command_offset for commit in (await read_effective(log, 0, GENESIS, 1_000))[1]]


async def effective(log: MemoryLog) -> list[Event]:
    """Every event that counts."""
    commits = (await read_effective(log, 0, GENESIS, 1_000))[1]
    return [e for c in commits for e in decode_body(c.stored_body, c.seal.codec, c.seal.raw_size)]
