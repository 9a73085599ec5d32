"""The owner of one partition: decides its commands in order, commits, and lets outputs leave when they are confirmed.

One batch is in flight. Between batches the state is the confirmed state, and everything that leaves (dispatches,
answers, timers, snapshots) is derived from it. Whenever the log may hold something else than was meant, the state is
dropped and folded anew: there is no second copy and no undo (`docs/design/architecture.md`, sections 3.2 and 3.3).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol

import structlog

from dagbok.agents.faultpoints import BATCH_APPENDED, BATCH_DECIDED, OUTPUTS_SENT, reach
from dagbok.agents.patience import Patience
from dagbok.agents.scheduler.execute import StateBroken
from dagbok.agents.scheduler.handle import Decided, handle, refuse_broken
from dagbok.agents.scheduler.inbox import MAX_CLOCK_AHEAD_MS
from dagbok.agents.scheduler.recover import Recovery
from dagbok.events.codes import Code
from dagbok.events.commit import Commit
from dagbok.events.errors import DagbokError, LogCorrupt, LogError, LogLost
from dagbok.events.log.clock import Clock
from dagbok.events.log.port import COMMANDS, EVENTS, Log, Record, StoredRecord
from dagbok.events.traceparent import TRACEPARENT
from dagbok.projections.partition import PartitionState

logger = structlog.get_logger(__name__)

MAX_BATCH = 256
MAX_BATCH_RAW_BYTES = 2 * 1024 * 1024
"""A batch ends with the commit that takes it to this size, uncompressed: deciding holds up the loop, and a few large
decompositions in one batch would do so for a second."""
DOUBT_PAUSE_S = 0.2
LONGEST_DOUBT_PAUSE_S = 5.0


class Outputs(Protocol):
    """What is derived from confirmed commits."""

    def rebuild(self, state: PartitionState, pending_until: int) -> None:
        """The state was folded from the log: derive everything from it. Commands below `pending_until` are in the log
        and not decided yet; what they change is not worth sending first."""
        ...

    def confirmed(self, state: PartitionState, batch: Sequence[Decided]) -> None:
        """These commits are surely in the log; `state` is behind the last of them."""
        ...


class Owner:
    """Decides for one partition, from `run` until it is cancelled. Whoever holds `between_batches` sees the confirmed
    state. `clock` is the host's; `writer` its name in the headers of commits."""

    def __init__(
        self, log: Log, partition: int, recovery: Recovery, outputs: Outputs, clock: Clock, writer: str
    ) -> None:
        self._log, self._partition, self._recovery, self._outputs = log, partition, recovery, outputs
        self._clock = clock
        self._headers = {"writer": writer}
        self._moved = asyncio.Condition()
        self.between_batches = asyncio.Lock()
        self.state = PartitionState(partition)
        self.recovered = asyncio.Event()
        self.pending_until = 0
        self._confirmed = -1
        self._patience = Patience()

    async def run(self) -> None:
        """Take the partition over and decide until cancelled. Raises `DagbokError` when going on would be wrong: the
        log is damaged, was written by a newer dagbok, or has lost records; and `StorageFailed` when the disk has failed
        for longer than `Patience` bears. Nothing is lost then: whoever starts next goes on from the log."""
        await self._recover()
        while True:
            async with self.between_batches:
                records = await self._step_surely()
            if not records:
                await self._wait()

    async def decided(self, command_offset: int) -> None:
        """Wait until the command at `command_offset`, and all before it, are decided and confirmed."""
        async with self._moved:
            await self._moved.wait_for(lambda: self._confirmed >= command_offset)

    async def _step_surely(self) -> int:
        """Decide what waits; in doubt fold anew, as often as it takes, before anybody else may see the state."""
        doubts = 0
        while True:
            try:
                if doubts:
                    await self._recover()
                count = await self._step()
                self._patience.restored()
                return count
            except (DagbokError, OSError, StateBroken) as error:
                self._doubt(error)
                write = logger.info if self._patience.failing else logger.warning
                write("owner.doubt", partition=self._partition, error=str(error))
            await asyncio.sleep(min(DOUBT_PAUSE_S * 2.0 ** min(doubts, 30), LONGEST_DOUBT_PAUSE_S))
            doubts += 1

    def _doubt(self, error: Exception) -> None:
        """Raises unless reading the log again may tell how to go on."""
        try:
            if not error_is_doubt(error):
                raise error
            self._patience.bear(error)
        except Exception:
            # Nobody may go on with a state that is perhaps not in the log.
            self.recovered.clear()
            self.state = PartitionState(self._partition)
            raise

    async def _recover(self) -> None:
        self.recovered.clear()
        self.state = await self._recovery.fold()
        self.pending_until = (await self._log.bounds(COMMANDS, self._partition)).end
        self._outputs.rebuild(self.state, self.pending_until)
        self.recovered.set()
        await self._tell()

    async def _step(self) -> int:
        """Decide what waits; the number of commands that were there."""
        start = self._next_command()
        records = await self._log.read(COMMANDS, self._partition, start, MAX_BATCH)
        if records:
            if records[0].offset != start:
                await self._check_gap()
            if batch := await self._decide(records):
                await self._commit(batch)
        return len(records)

    async def _check_gap(self) -> None:
        """Commands are missing. An owner that stood still may find that another one has decided and removed them: it
        folds anew, and that fold tells whether any are lost."""
        try:
            await self._recovery.check_commands(self.state)
        except LogLost as error:
            raise LogError(error.message, code=Code.LOG_CONFLICT) from error

    async def _wait(self) -> None:
        try:
            await self._log.wait(COMMANDS, self._partition, self._next_command())
        except (DagbokError, OSError) as error:
            # If the disk fails, so does the next step, which bears it only for a while.
            if not error_is_doubt(error):
                raise
            logger.warning("owner.wait_failed", partition=self._partition, error=str(error))
            await asyncio.sleep(DOUBT_PAUSE_S)

    def _next_command(self) -> int:
        return self.state.position.last_command_offset + 1

    async def _decide(self, records: Sequence[StoredRecord]) -> list[Decided]:
        # The key of a record is a hint here: `handle` brings back whatever a command really is about.
        await self._recovery.warm(self.state, [record.key for record in records])
        batch: list[Decided] = []
        raw_bytes = 0
        for record in records:
            if self._is_ahead(record):
                if batch:
                    break
                raise self._clock_error(record)
            try:
                decided = handle(self.state, record, self._log.partitions, self._recovery.thaw)
            except StateBroken as error:
                # What was decided before is not in the log yet: it is decided again after the fold.
                logger.error("command.broke", partition=self._partition, offset=record.offset, exc_info=error)
                return await self._refuse(record, error)
            batch.append(decided)
            raw_bytes += decided.commit.seal.raw_size
            if raw_bytes >= MAX_BATCH_RAW_BYTES:
                break
        return batch

    async def _refuse(self, record: StoredRecord, cause: StateBroken) -> list[Decided]:
        """Decide what stands before the command that broke the state, on a state folded anew, then refuse that one;
        nothing when another owner has decided it by now."""
        await self._recover()
        batch: list[Decided] = []
        start = self._next_command()
        if start > record.offset:
            return batch
        for earlier in await self._log.read(COMMANDS, self._partition, start, MAX_BATCH):
            if earlier.offset >= record.offset:
                break
            batch.append(handle(self.state, earlier, self._log.partitions, self._recovery.thaw))
        batch.append(refuse_broken(self.state, record, cause, self._recovery.thaw))
        return batch

    async def _commit(self, batch: Sequence[Decided]) -> None:
        records = [Record(_key(decided), decided.value, self._headers_of(decided.commit)) for decided in batch]
        first = batch[0].commit.offset
        reach(BATCH_DECIDED)
        landed = await self._log.append(EVENTS, self._partition, records, expect=first)
        if landed != first:
            raise LogError(f"a batch for offset {first} landed at {landed}", code=Code.LOG_CONFLICT)
        reach(BATCH_APPENDED)
        self._outputs.confirmed(self.state, batch)
        reach(OUTPUTS_SENT)
        self._recovery.confirmed(self.state, batch)
        await self._tell()

    async def _tell(self) -> None:
        self._confirmed = self.state.position.last_command_offset
        async with self._moved:
            self._moved.notify_all()

    def _headers_of(self, commit: Commit) -> Mapping[str, str]:
        if commit.traceparent is None:
            return self._headers
        return self._headers | {TRACEPARENT: commit.traceparent}

    def _is_ahead(self, record: StoredRecord) -> bool:
        return record.append_ms - self._clock() > MAX_CLOCK_AHEAD_MS

    def _clock_error(self, record: StoredRecord) -> LogCorrupt:
        ahead_s = (record.append_ms - self._clock()) // 1000
        return LogCorrupt(
            f"the command at {self._partition}:{record.offset} was appended {ahead_s} s in the future",
            code=Code.CLOCK_AHEAD,
            advice="set the clock of this machine, or wait until it has caught up",
        )


def error_is_doubt(error: BaseException) -> bool:
    """True when the records may be in the log or not, and reading it again tells."""
    doubtful = isinstance(error, OSError | StateBroken) or type(error) is LogError
    return doubtful or (isinstance(error, DagbokError) and error.retry)


def _key(decided: Decided) -> str:
    return decided.stream or f"partition:{decided.commit.seal.partition}"
