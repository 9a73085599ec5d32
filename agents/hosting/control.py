"""Send a command to a data folder from any process: its owner decides it; where there is none, this process does, and
leaves.

The answer is found in the log itself, by the offset of the command.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from dagbok.agents.hosting.embedded import PARTITION, busy_message, keeper_of
from dagbok.agents.hosting.folder import DataFolder
from dagbok.agents.hosting.identity import new_process_id
from dagbok.agents.hosting.locks import FileLock
from dagbok.agents.scheduler.answers import answer_to
from dagbok.agents.scheduler.handle import Decided
from dagbok.agents.scheduler.owner import Owner
from dagbok.agents.scheduler.recover import Recovery
from dagbok.events.body import decode_body
from dagbok.events.commit import Commit
from dagbok.events.envelope import Answer, Command, command_record
from dagbok.events.errors import FolderBusy
from dagbok.events.log.clock import system_ms
from dagbok.events.log.port import COMMANDS, EVENTS, Log
from dagbok.events.log.sqlite import SqliteLog
from dagbok.events.places import events_at
from dagbok.events.rule import GENESIS, Position
from dagbok.events.run.events import CommandRepeated, Event
from dagbok.projections.partition import PartitionState
from dagbok.projections.reading import read_effective

PATIENCE_S = 15.0
LOOK_S = 0.05
READ_COMMITS = 2_000


class Silent:
    """Outputs of an owner that only decides: nothing is dispatched, nobody is answered."""

    def rebuild(self, state: PartitionState, pending_until: int) -> None:
        """Nothing is derived."""

    def confirmed(self, state: PartitionState, batch: Sequence[Decided]) -> None:
        """Nothing leaves."""


async def decide_once(
    folder: DataFolder,
    command: Command,
    *,
    since: Position = GENESIS,
    patience_s: float = PATIENCE_S,
) -> Answer:
    """Append the command and return what became of it. `since`: where to begin to look for the answer.

    Raises `FolderBusy` when the owner lives but does not decide within `patience_s`; the command is in the log then,
    and is decided as soon as the owner goes on.
    """
    folder.prepare()
    log = SqliteLog.open(folder.log)
    lock = FileLock(folder.scheduler_lock, new_process_id())
    answer: asyncio.Task[Answer] | None = None
    deciding: asyncio.Task[None] | None = None
    try:
        offset = await log.append(COMMANDS, PARTITION, [command_record(command)])
        deciding = asyncio.create_task(_decide_when_free(folder, log, lock))
        answer = asyncio.create_task(find_answer(log, since, offset, deciding))
        # Without an owner this process decides itself, and however long the fold takes is no reason to give up.
        while not (await asyncio.wait((answer,), timeout=patience_s))[0]:
            if not lock.held:
                raise FolderBusy("the command is in the log, and is decided as soon as the owner goes on")
        return answer.result()
    except FolderBusy as error:
        # An owner that was stopped inside a transaction holds the lock of the database too.
        raise FolderBusy(f"owner not responding: {busy_message(folder, lock)}; {error.message}") from error
    finally:
        await _ended(answer, deciding)
        lock.release()
        await log.close()


async def _ended(*tasks: asyncio.Task[Answer] | asyncio.Task[None] | None) -> None:
    for task in tasks:
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def find_answer(log: Log, position: Position, offset: int, deciding: asyncio.Task[None]) -> Answer:
    """Follow the log until the command at `offset` is decided."""
    while True:
        position, commits = await read_effective(log, PARTITION, position, READ_COMMITS)
        for commit in commits:
            if commit.seal.command_offset == offset:
                return answer_from(log, commit)
        if not commits:
            if deciding.done():
                deciding.result()
            await log.wait(EVENTS, PARTITION, position.next_offset, LOOK_S)


def answer_from(log: Log, commit: Commit) -> Answer:
    """The answer that a commit gives to its command (blocking); a repeat gets that of the first commit."""
    seal, offset = commit.seal, commit.offset
    events: Sequence[Event] = decode_body(commit.stored_body, seal.codec, seal.raw_size)
    if isinstance(repeated := events[0], CommandRepeated):
        offset = repeated.offset
        events = events_at(log, seal.partition, offset)
    return answer_to(seal.command_id, (seal.partition, offset), events)


async def _decide_when_free(folder: DataFolder, log: Log, lock: FileLock) -> None:
    """As soon as the folder has no owner, be it, until cancelled. When this ends nothing is written any more, so that
    the lock may go to another."""
    while not lock.try_acquire():  # noqa: ASYNC110 - the operating system tells nobody that a lock is free
        await asyncio.sleep(LOOK_S)
    recovery = Recovery(log, PARTITION, keeper_of(folder, log), log_refuses=True)
    try:
        await Owner(log, PARTITION, recovery, Silent(), system_ms, "control").run()
    finally:
        # A snapshot is written in a thread, which no cancellation stops.
        await recovery.settled()
