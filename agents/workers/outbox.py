"""Commands on their way to the log: appended together, repeated until somebody answers.

A command without an answer is sent again, later each time (up to ten minutes); its decider knows a repeat. So nothing
is lost, whoever dies on the way. How soon it is sent again, the log tells: when the command is decided and its answer
still not here, the answer was lost, and one second is enough. When it is not decided, its owner is slow or gone; the
command is in the log all the same, and to send it again could only make the owner slower.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from dagbok.agents.faultpoints import COMMAND_APPENDED, reach
from dagbok.agents.patience import Patience
from dagbok.agents.tracing.switch import Context, no_context
from dagbok.events.codes import Code
from dagbok.events.envelope import Answer, Command, command_record
from dagbok.events.errors import DagbokError, StorageFailed
from dagbok.events.ids import partition_of
from dagbok.events.log.port import COMMANDS, EVENTS, Log, Record
from dagbok.events.places import commit_at

logger = structlog.get_logger(__name__)

OnAnswer = Callable[[Answer], None]

REPEAT_AFTER_S = 1.0
UNDECIDED_FACTOR = 30.0
"""How many times longer a command waits that is not decided yet."""
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
    partition: int
    traceparent: str | None
    offset: int | None = None
    repeats: int = 0
    internal_errors: int = 0

    def is_due(self, now_s: float, after_s: float) -> bool:
        """Nobody has answered for `after_s`, and twice as long each time."""
        return now_s - self.sent_s >= min(after_s * 2.0 ** min(self.repeats, 30), LONGEST_REPEAT_S)


class Outbox:
    """`address` is where answers come; `now_s` is monotonic. `repeat_after_s`: when a command that is decided is sent
    again for the first time, because its answer has not come. `context`: the span that whoever sends is in, as a
    `traceparent`; asked for each command that says none itself."""

    def __init__(
        self,
        log: Log,
        address: str,
        now_s: Callable[[], float],
        *,
        repeat_after_s: float = REPEAT_AFTER_S,
        context: Context = no_context,
    ) -> None:
        self._log, self._address, self._now_s, self._context = log, address, now_s, context
        self._repeat_after_s = repeat_after_s
        self._waiting: list[Command] = []
        self._filled = asyncio.Event()
        self._settled = asyncio.Event()
        self._pending: dict[str, _Pending] = {}
        self._decided: dict[int, int] = {}
        self._patience = Patience()
        self._failure: StorageFailed | None = None

    def send(
        self,
        command: Command,
        on_answer: OnAnswer | None = None,
        *,
        insist: bool = True,
        traceparent: str | None = None,
    ) -> None:
        """Append it with the next batch; `on_answer` hears what became of it, at most once.

        `insist`: an answer that says *retry* does not count; the command is repeated, later each time. Only the third
        `internal_error` counts all the same."""
        partition = partition_of(command.stream, self._log.partitions)
        traceparent = traceparent or self._context()
        self._pending[command.id] = _Pending(command, on_answer, self._now_s(), insist, partition, traceparent)
        self._waiting.append(command)
        self._filled.set()

    async def ask(self, command: Command, *, traceparent: str | None = None) -> Answer:
        """Send and wait for the first answer, whatever it says."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.send(
            command,
            lambda found: None if answer.done() else answer.set_result(found),
            insist=False,
            traceparent=traceparent,
        )
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

    def fail(self, failure: StorageFailed) -> None:
        """This process can do its work no more: `run` raises it."""
        self._failure = failure
        self._filled.set()

    async def run(self) -> None:
        """Append what waits, and repeat what has had no answer for long, until cancelled.

        Raises `StorageFailed` when the log could not be written for longer than `Patience` bears, and what `fail` was
        given. The attempts whose results are in hand then run again: for the log nothing is lost."""
        looked_s = self._now_s()
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._repeat_after_s / 4 if self._pending else None):
                    await self._filled.wait()
            # Also while new commands keep coming.
            if self._now_s() - looked_s >= self._repeat_after_s / 4:
                looked_s = self._now_s()
                await self.repeat()
            self._filled.clear()
            if self._failure is not None:
                raise self._failure
            if self._waiting:
                commands, self._waiting = self._waiting, []
                await self._append(commands)

    async def repeat(self) -> None:
        """Send again what has had no answer for long. Looks into the log only when something may be due."""
        now_s = self._now_s()
        overdue = [pending for pending in self._pending.values() if pending.is_due(now_s, self._repeat_after_s)]
        for pending in overdue:
            if self._was_decided(pending) or pending.is_due(now_s, self._repeat_after_s * UNDECIDED_FACTOR):
                pending.sent_s, pending.offset = now_s, None
                pending.repeats += 1
                self._waiting.append(pending.command)
        if self._waiting:
            self._filled.set()
        # After the look: an answer to what was decided only now may be on its way.
        for partition in {pending.partition for pending in overdue}:
            self._decided[partition] = await self._last_decided(partition)

    def _was_decided(self, pending: _Pending) -> bool:
        return pending.offset is not None and pending.offset <= self._decided.get(pending.partition, -1)

    async def _last_decided(self, partition: int) -> int:
        """The offset up to which commands are decided, as the last commit says; what was known when it cannot be read.
        Only a hint: a record that does not count may say something else, and costs a repeat at the worst."""
        known = self._decided.get(partition, -1)
        try:
            end = (await self._log.bounds(EVENTS, partition)).end
            parts = await commit_at(self._log, partition, end - 1)
        except (DagbokError, OSError):
            return known
        return known if parts is None else max(known, parts[0].command_offset)

    async def settled(self) -> None:
        """Wait until every command has its answer."""
        while self._pending:
            self._settled.clear()
            await self._settled.wait()

    async def _append(self, commands: Sequence[Command]) -> None:
        partitions: dict[int, list[Command]] = {}
        for command in commands:
            partitions.setdefault(partition_of(command.stream, self._log.partitions), []).append(command)
        for partition, together in partitions.items():
            records = [command_record(command, self._address, self._traceparent(command)) for command in together]
            first = await self._append_surely(partition, records)
            for offset, command in enumerate(together, first):
                if (pending := self._pending.get(command.id)) is not None:
                    pending.offset = offset

    def _traceparent(self, command: Command) -> str | None:
        """None also of a repeat whose answer has come meanwhile."""
        pending = self._pending.get(command.id)
        return None if pending is None else pending.traceparent

    async def _append_surely(self, partition: int, records: Sequence[Record]) -> int:
        """The offset of the first."""
        while True:
            try:
                first = await self._log.append(COMMANDS, partition, records)
                reach(COMMAND_APPENDED)
                self._patience.restored()
                return first
            except (DagbokError, OSError) as error:
                # Doubt is no harm here: a command that is in the log twice is decided once.
                self._patience.bear(error)
                write = logger.info if self._patience.failing else logger.warning
                write("outbox.append_failed", commands=len(records), error=str(error))
                await asyncio.sleep(RETRY_PAUSE_S)
