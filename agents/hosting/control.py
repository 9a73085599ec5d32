"""Send a command to a data folder from any process: its owner decides it; where there is none, this process does, and
leaves.

The answer is found in the log itself, by the offset of the command.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from dagbok.agents.hosting.answering import find
from dagbok.agents.hosting.folder import PARTITION, DataFolder
from dagbok.agents.hosting.identity import new_process_id
from dagbok.agents.hosting.locks import FileLock
from dagbok.agents.hosting.presence import BEAT_S, beat, look_at_owner
from dagbok.agents.hosting.snapshots import keeper_of
from dagbok.agents.scheduler.handle import Decided
from dagbok.agents.scheduler.owner import Owner
from dagbok.agents.scheduler.recover import Recovery
from dagbok.events.envelope import Answer, Command, command_record
from dagbok.events.errors import FolderBusy
from dagbok.events.log.clock import system_ms
from dagbok.events.log.port import COMMANDS, EVENTS, Log
from dagbok.events.log.sqlite import SqliteLog
from dagbok.projections.partition import PartitionState

PATIENCE_S = 15.0
GLANCE_S = 0.25
TAKE_EVERY_S = 0.05


class NoOutputs:
    """Outputs of an owner that only decides: nothing is dispatched, nobody is answered."""

    def rebuild(self, state: PartitionState, pending_until: int) -> None:
        """Nothing is derived."""

    def confirmed(self, state: PartitionState, batch: Sequence[Decided]) -> None:
        """Nothing leaves."""


async def decide_once(folder: DataFolder, command: Command, *, patience_s: float = PATIENCE_S) -> Answer:
    """Append the command and return what became of it.

    Raises `FolderBusy` when another process is the owner but does not decide within `patience_s`, or shows that it does
    not respond; the command is in the log then, and is decided as soon as the owner goes on.
    """
    folder.prepare()
    log = SqliteLog.open(folder.log)
    lock = FileLock(folder.scheduler_lock, new_process_id())
    answer: asyncio.Task[Answer] | None = None
    deciding: asyncio.Task[None] | None = None
    try:
        since = (await log.bounds(EVENTS, PARTITION)).end
        await log.append(COMMANDS, PARTITION, [command_record(command)])
        deciding = asyncio.create_task(_decide_when_free(folder, log, lock))
        answer = asyncio.create_task(find(log, PARTITION, since, command))
        begun_s = time.monotonic()
        # Without an owner this process decides itself, and however long the fold takes is no reason to give up.
        while not answer.done():
            await asyncio.wait((answer, deciding), timeout=GLANCE_S, return_when=asyncio.FIRST_COMPLETED)
            if deciding.done():
                deciding.result()
            elif not lock.held and not answer.done():
                _check_patience(folder, time.monotonic() - begun_s, patience_s)
        return answer.result()
    except FolderBusy as error:
        # An owner that was stopped inside a transaction holds the lock of the database too.
        seen = look_at_owner(folder)
        said = str(seen) if seen.state != "alive" else f"owner not responding: {seen}"
        raise FolderBusy(f"{said}; {error.message}") from error
    finally:
        await _ended(answer, deciding)
        lock.release()
        await log.close()


def _check_patience(folder: DataFolder, waited_s: float, patience_s: float) -> None:
    # One that has just woken up has a moment to show that it lives.
    silent = waited_s >= 2 * BEAT_S and look_at_owner(folder).state == "silent"
    if silent or waited_s >= patience_s:
        raise FolderBusy("the command is in the log, and is decided as soon as the owner goes on")


async def _ended(*tasks: asyncio.Task[Answer] | asyncio.Task[None] | None) -> None:
    for task in tasks:
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _decide_when_free(folder: DataFolder, log: Log, lock: FileLock) -> None:
    """As soon as the folder has no owner, be it, until cancelled. When this ends nothing is written any more, so that
    the lock may go to another."""
    while not lock.try_acquire():  # noqa: ASYNC110 - the operating system tells nobody that a lock is free
        await asyncio.sleep(TAKE_EVERY_S)
    recovery = Recovery(log, PARTITION, keeper_of(folder, log), log_refuses=True)
    alive = asyncio.create_task(beat(folder))
    try:
        await Owner(log, PARTITION, recovery, NoOutputs(), system_ms, "control").run()
    finally:
        alive.cancel()
        # A snapshot is written in a thread, which no cancellation stops.
        await recovery.settled()
