"""Commands on their way to the log: appended together, repeated until somebody answers.

A command without an answer is sent again, later each time (up to ten minutes); its decider knows a repeat. So nothing
is lost, whoever dies on the way.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from dagbok.agents.faultpoints import COMMAND_APPENDED, reach
from dagbok.events.codes import Code
from dagbok.events.envelope import Answer, Command, command_record
from dagbok.events.errors import DagbokError
from dagbok.events.ids import partition_of
from dagbok.events.log.port import COMMANDS, Log, Record

logger = structlog.get_logger(__name__)

OnAnswer = Callable[[Answer], None]

REPEAT_AFTER_S = 30.0
LONGEST_REPEAT_S = 600.0
INTERNAL_ERRORS = 3
"""The scheduler broke on this command so many times: it would do so for ever."""

RETRY_PAUSE_S = 0.5


@dataclass(slots=True)
class _Pending:
    command: Command
    on_answer: OnAnswer | None
    sent_s: float
    insist: bool
    repeats: int = 0
    internal_errors: int = 0

    def is_due(self, now_s: float, repeat_after_s: float) -> bool:
        """Nobody has answered for long: twice as long each time."""
        return now_s - self.sent_s >= min(repeat_after_s * 2.0 ** min(self.repeats, 30), LONGEST_REPEAT_S)


class Outbox:
    """`address` is where answers come; `now_s` is monotonic."""

    def __init__(
        self, log: Log, address: str, now_s: Callable[[], float], *, repeat_after_s: float = REPEAT_AFTER_S
    ) -> None:
        self._log, self._address, self._now_s = log, address, now_s
        self._repeat_after_s = repeat_after_s
        self._waiting: list[Command] = []
        self._filled = asyncio.Event()
        self._settled = asyncio.Event()
        self._pending: dict[str, _Pending] = {}

    def send(self, command: Command, on_answer: OnAnswer | None = None, *, insist: bool = True) -> None:
        """Append it with the next batch; `on_answer` hears what became of it, at most once.

        `insist`: an answer that says *retry* does not count; the command is repeated, later each time. Only the third
        `internal_error` counts all the same."""
        self._pending[command.id] = _Pending(command, on_answer, self._now_s(), insist)
        self._waiting.append(command)
        self._filled.set()

    async def ask(self, command: Command) -> Answer:
        """Send and wait for the first answer, whatever it says."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.send(command, lambda found: None if answer.done() else answer.set_result(found), insist=False)
        return await answer

    def answered(self, answer: Answer) -> None:
        """An answer came."""
        pending = self._pending.get(answer.id)
        if pending is None:
            return
        if answer.retry and pending.insist:
            pending.internal_errors += answer.code == Code.INTERNAL_ERROR
            if pending.internal_errors < INTERNAL_ERRORS:
                return
        del self._pending[answer.id]
        if pending.on_answer is not None:
            pending.on_answer(answer)
        if not self._pending:
            self._settled.set()

    async def run(self) -> None:
        """Append what waits, and repeat what has had no answer for long, until cancelled."""
        looked_s = self._now_s()
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._filled.wait(), self._repeat_after_s / 4)
            # Also while new commands keep coming.
            if self._now_s() - looked_s >= self._repeat_after_s / 4:
                looked_s = self._now_s()
                self.repeat()
            self._filled.clear()
            if self._waiting:
                commands, self._waiting = self._waiting, []
                await self._append(commands)

    def repeat(self) -> None:
        """Send again what has had no answer for long."""
        now_s = self._now_s()
        for pending in self._pending.values():
            if pending.is_due(now_s, self._repeat_after_s):
                pending.sent_s = now_s
                pending.repeats += 1
                self._waiting.append(pending.command)
        if self._waiting:
            self._filled.set()

    async def settled(self) -> None:
        """Wait until every command has its answer."""
        while self._pending:
            self._settled.clear()
            await self._settled.wait()

    async def _append(self, commands: Sequence[Command]) -> None:
        partitions: dict[int, list[Record]] = {}
        for command in commands:
            partition = partition_of(command.stream, self._log.partitions)
            partitions.setdefault(partition, []).append(command_record(command, self._address))
        for partition, records in partitions.items():
            await self._append_surely(partition, records)

    async def _append_surely(self, partition: int, records: Sequence[Record]) -> None:
        while True:
            try:
                await self._log.append(COMMANDS, partition, records)
                reach(COMMAND_APPENDED)
                return
            except (DagbokError, OSError) as error:
                # Doubt is no harm here: a command that is in the log twice is decided once.
                logger.warning("outbox.append_failed", commands=len(records), error=str(error))
                await asyncio.sleep(RETRY_PAUSE_S)
