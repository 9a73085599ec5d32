"""An owner that does not know what became of its batch: nobody sees its state, and nothing leaves, until it has read
the log again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from dagbok.agents.scheduler import owner as module
from dagbok.agents.scheduler.recover import NoSnapshots, Recovery
from dagbok.events.envelope import command_record, run_command
from dagbok.events.errors import LogCorrupt, StorageFailed
from dagbok.events.log.memory import MemoryLog
from dagbok.events.log.port import COMMANDS, EVENTS, Record, StoredRecord, Topic
from dagbok.events.run.commands import PauseRun, RunCommand
from dagbok.testing import start, task
from tests.simulation.owners import Outlet, RunningOwner
from tests.support.logbuilder import SENDER, START_MS
from tests.support.snapshotting import image

TIMEOUT_S = 20.0


class StuckLog(MemoryLog):
    """Holds appends to events until `release`, and then does with them what `outcome` says. Reads fail `read_failures`
    times."""

    def __init__(self) -> None:
        super().__init__(clock=lambda: START_MS)
        self.held, self.release = asyncio.Event(), asyncio.Event()
        self.outcome: Exception | None = None
        self.read_failures = 0

    async def append(
        self, topic: Topic, partition: int, records: Sequence[Record], *, expect: int | None = None
    ) -> int:
        if topic == EVENTS:
            self.held.set()
            await self.release.wait()
            if self.outcome is not None:
                error, self.outcome = self.outcome, None
                raise error
        return await super().append(topic, partition, records, expect=expect)

    async def read(self, topic: Topic, partition: int, start: int, limit: int) -> Sequence[StoredRecord]:
        if topic == EVENTS and self.read_failures:
            self.read_failures -= 1
            raise StorageFailed("cannot be read now")
        return await super().read(topic, partition, start, limit)


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DOUBT_PAUSE_S", 0.001)


async def send(log: MemoryLog, command: RunCommand, id: str) -> None:
    """A command of a client that wants an answer."""
    envelope = run_command(SENDER, "run:r", command, id=id, now_ms=START_MS)
    await log.append(COMMANDS, 0, [command_record(envelope, "client")])


async def test_nothing_leaves_and_nobody_sees_the_state_before_the_batch_is_acknowledged() -> None:
    log, outlet = StuckLog(), Outlet()
    running = RunningOwner(log, outlet, 1)
    await send(log, start(task("a")), "start")
    async with asyncio.timeout(TIMEOUT_S):
        await log.held.wait()
        decided = asyncio.create_task(running.decided(0))
        for _ in range(50):
            await asyncio.sleep(0)
        assert running.owner.between_batches.locked()
        assert not decided.done()
        assert (outlet.dispatches, outlet.answers, outlet.confirmed) == ([], [], set())
        log.release.set()
        await decided
    assert (len(outlet.dispatches), len(outlet.answers)) == (1, 1)
    await running.stop()


@pytest.mark.parametrize("read_failures", [0, 3])
async def test_in_doubt_the_lock_is_held_until_the_log_was_read_again(read_failures: int) -> None:
    log, outlet = StuckLog(), Outlet()
    running = RunningOwner(log, outlet, 1)
    await send(log, start(task("a")), "start")
    async with asyncio.timeout(TIMEOUT_S):
        await log.held.wait()
        log.outcome, log.read_failures = StorageFailed("no room"), read_failures
        log.release.set()
        async with running.owner.between_batches:
            state = image(running.owner.state)
            assert state == image(await Recovery(log, 0, NoSnapshots(0)).fold())
        await running.decided(0)
    assert (len(outlet.dispatches), len(outlet.answers)) == (1, 1)
    await running.stop()


async def test_an_error_that_reading_again_does_not_heal_ends_the_owner() -> None:
    log = StuckLog()
    running = RunningOwner(log, Outlet(), 1)
    await send(log, PauseRun(), "pause")
    log.outcome = LogCorrupt("broken for good")
    log.release.set()
    with pytest.raises(LogCorrupt, match="broken for good"):
        async with asyncio.timeout(TIMEOUT_S):
            await running.decided(0)


async def test_void_records_behind_the_position_do_not_keep_the_owner_from_going_on() -> None:
    log, outlet = MemoryLog(clock=lambda: START_MS), Outlet()
    running = RunningOwner(log, outlet, 1)
    async with asyncio.timeout(TIMEOUT_S):
        for number in range(5):
            await log.append(EVENTS, 0, [Record("", b"late"), Record("", b"no commit at all\n{}")])
            await send(log, PauseRun(), f"pause-{number}")
            await running.decided(number)
    assert len({answer.id for answer in outlet.answers}) == 5
    await running.stop()
