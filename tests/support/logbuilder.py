"""Logs as the owner of a partition would have written them, without an owner: commands are handled one by one.

`LogBuilder` takes any commands; `tests/support/histories.py` makes random ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from dagbok.agents.scheduler.handle import handle
from dagbok.agents.scheduler.losses import lost_commit
from dagbok.events.envelope import Sender, command_record, run_command
from dagbok.events.log.memory import MemoryLog
from dagbok.events.log.port import EVENTS, NO_HEADERS, Log, Record, StoredRecord
from dagbok.events.run.commands import RunCommand
from dagbok.events.run.events import Event
from dagbok.events.traceparent import TRACEPARENT
from dagbok.projections.partition import PartitionState, apply
from dagbok.projections.task_graph.state import RunState

SENDER = Sender("acme", "docs", "user:ann")
START_MS = 1_700_000_000_000


class LogBuilder:
    """One partition of a log. `state` is the fold of what was written; `now_ms` the log's clock; `traceparent` the
    header of the commands from now on."""

    def __init__(self, partition: int = 0, partitions: int = 1) -> None:
        self.state = PartitionState(partition)
        self._partitions = partitions
        self.records: list[Record] = []
        self.now_ms = START_MS
        self.traceparent: str | None = None
        self.commands: list[StoredRecord] = []

    def send(self, run: str, command: RunCommand, *, sender: Sender = SENDER, id: str | None = None) -> Sequence[Event]:
        """Write what `command` to a run causes."""
        id = id or f"command-{len(self.commands)}"
        envelope = run_command(sender, f"run:{run}", command, id=id, now_ms=self.now_ms)
        return self.deliver(command_record(envelope).value)

    def deliver(self, value: bytes) -> Sequence[Event]:
        """Write what the bytes of a command cause, whatever they are."""
        headers = {} if self.traceparent is None else {TRACEPARENT: self.traceparent}
        record = StoredRecord(len(self.commands), self.now_ms, "", value, headers)
        self.commands.append(record)
        decided = handle(self.state, record, self._partitions)
        named = decided.commit.traceparent
        self.records.append(Record(decided.stream or "", decided.value, {TRACEPARENT: named} if named else NO_HEADERS))
        return decided.events

    def void(self, value: bytes) -> None:
        """Write a record that does not count: a late one, or no commit at all."""
        self.records.append(Record("", value))
        self.state.position = self.state.position.skip(self.state.position.next_offset)

    def lose(self, count: int) -> None:
        """The next commands are removed undecided, and somebody accepts it."""
        position, start = self.state.position, len(self.commands) + count
        commit, value, event = lost_commit(
            position,
            self.state.partition,
            start,
            self.state.clock_ms,
            actor="operator:ann",
            id=f"loss-{start}",
            sent_ms=self.now_ms,
        )
        self.commands += [StoredRecord(offset, self.now_ms, "", b"") for offset in range(len(self.commands), start)]
        self.records.append(Record("", value))
        apply(self.state, commit, [event])

    def run(self, run: str) -> RunState:
        """The state of a run that was started."""
        return self.state.runs[f"run:{run}"]

    async def log(self) -> MemoryLog:
        """A log of its own, with all that was written so far."""
        log = MemoryLog(partitions=self._partitions)
        await self.append_to(log)
        return log

    async def append_to(self, log: Log, start: int = 0) -> None:
        """Append what was written from offset `start` on."""
        if self.records[start:]:
            await log.append(EVENTS, self.state.partition, self.records[start:], expect=start)
