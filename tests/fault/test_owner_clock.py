"""An owner whose clock is off: deadlines are log time, and pass when the log says so."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from dagbok.agents.hosting.deciding import Deciding
from dagbok.agents.scheduler.recover import NoSnapshots
from dagbok.events.codes import Code
from dagbok.events.envelope import command_record, run_command
from dagbok.events.log.memory import MemoryLog
from dagbok.events.log.port import COMMANDS, EVENTS
from dagbok.events.run import commands as c
from dagbok.events.run import events as e
from dagbok.testing import CLAIM, start, task
from tests.simulation.owners import Outlet
from tests.support.audit import effective_events
from tests.support.logbuilder import SENDER, START_MS

TIMEOUT_S = 20.0
LEASE_MS = 60_000
TEN_MINUTES_MS = 10 * 60_000


class Partition:
    """A log that is `now_ms` old, or as `passes` says, and an owner. Its one attempt was claimed when the log began."""

    def __init__(self, owner_ahead_ms: int) -> None:
        self.now_ms = 0
        self.passes: Callable[[], int] = lambda: self.now_ms
        self.log = MemoryLog(clock=lambda: START_MS + self.passes())
        self.deciding = Deciding(
            self.log,
            0,
            Outlet(),
            NoSnapshots(0),
            asyncio.get_running_loop().create_future(),
            process="p",
            log_refuses=True,
            lives=lambda process: True,
            clock=lambda: START_MS + self.passes() + owner_ahead_ms,
        )

    async def tell(self, command: c.RunCommand) -> None:
        """Have a command decided now."""
        envelope = run_command(SENDER, "run:r", command, id=type(command).__name__, now_ms=START_MS + self.passes())
        offset = await self.log.append(COMMANDS, 0, [command_record(envelope)])
        async with asyncio.timeout(TIMEOUT_S):
            await self.deciding.owner.decided(offset)

    async def told(self, wanted: type[e.Event]) -> list[e.Event]:
        """All events so far, as soon as one of these is among them."""
        async with asyncio.timeout(TIMEOUT_S):
            while True:
                events = [event for _, event in await effective_events(self.log)]
                if any(isinstance(event, wanted) for event in events):
                    return events
                await self.log.wait(EVENTS, 0, (await self.log.bounds(EVENTS, 0)).end)


@asynccontextmanager
async def partition(owner_ahead_ms: int, lease_ms: int = LEASE_MS) -> AsyncIterator[Partition]:
    made = Partition(owner_ahead_ms)
    await made.deciding.begin()
    made.deciding.go_on()
    try:
        await made.tell(start(task("a", lease_ms=lease_ms)))
        await made.tell(c.StartAttempt("a", 1, CLAIM))
        yield made
    finally:
        await made.deciding.end()


async def test_an_owner_whose_clock_is_ahead_is_too_early_and_tries_again() -> None:
    async with partition(TEN_MINUTES_MS) as made:
        *_, early = await made.told(e.CommandRefused)
        assert isinstance(early, e.CommandRefused)
        assert early.code == Code.NOT_DUE
        made.now_ms = LEASE_MS
        events = await made.told(e.AttemptLost)
        assert {event.code for event in events if isinstance(event, e.CommandRefused)} == {Code.NOT_DUE}


async def test_an_owner_whose_clock_is_behind_ends_a_lease_that_the_log_has_passed() -> None:
    async with partition(-4 * 60_000) as made:
        made.now_ms = LEASE_MS
        await made.tell(c.PauseRun("log time goes on"))
        await made.told(e.AttemptLost)


async def test_an_owner_whose_clock_is_behind_knows_how_long_ago_it_saw_the_log_move() -> None:
    began_s = time.monotonic()
    async with partition(-4 * 60_000, lease_ms=1_000) as made:
        made.passes = lambda: int((time.monotonic() - began_s) * 1000)
        await made.told(e.AttemptLost)
