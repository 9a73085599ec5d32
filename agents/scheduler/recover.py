"""Taking a partition over: fold the log from the newest snapshot, and check that nothing was lost (architecture
3.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Protocol

import structlog

from dagbok.agents.scheduler.handle import Decided
from dagbok.events.body import decode_body
from dagbok.events.envelope import command_hash
from dagbok.events.errors import LogCorrupt, LogLost
from dagbok.events.log.port import COMMANDS, EVENTS, Log
from dagbok.events.places import commit_at
from dagbok.events.rule import Position
from dagbok.events.run.events import Event
from dagbok.projections.partition import PartitionState, apply
from dagbok.projections.reading import Tally, read_effective
from dagbok.projections.task_graph.state import RunState

logger = structlog.get_logger(__name__)

READ_COMMITS = 500


class Keeper(Protocol):
    """Keeps snapshots of a partition, and the runs that are closed for long outside of memory."""

    async def load(self) -> PartitionState:
        """The state of the newest snapshot that can be trusted, or an empty one."""
        ...

    def thaw(self, state: PartitionState, stream: str) -> None:
        """Bring a run back into memory before something is decided or folded for it."""
        ...

    async def warm(self, state: PartitionState, streams: Iterable[str]) -> None:
        """`thaw` all these without holding up other tasks; the state stands still meanwhile."""
        ...

    def peek(self, stream: str) -> RunState | None:
        """A copy of a run that is kept outside of memory, for readers; none when it is not."""
        ...

    def note(self, state: PartitionState, stream: str | None, events: Sequence[Event], size_bytes: int) -> None:
        """A commit was folded into `state`, and is surely in the log."""
        ...

    def save_if_due(self, state: PartitionState) -> None:
        """Between two batches: take a snapshot when one is due."""
        ...

    async def settled(self) -> None:
        """Wait for the snapshot that is being written, if any."""
        ...


class NoSnapshots:
    """Fold everything, every time."""

    def __init__(self, partition: int) -> None:
        self._partition = partition

    async def load(self) -> PartitionState:
        return PartitionState(self._partition)

    def thaw(self, state: PartitionState, stream: str) -> None:
        """Every run is in memory."""

    async def warm(self, state: PartitionState, streams: Iterable[str]) -> None:
        """Every run is in memory."""

    def peek(self, stream: str) -> RunState | None:
        """Every run is in memory."""
        return None

    def note(self, state: PartitionState, stream: str | None, events: Sequence[Event], size_bytes: int) -> None:
        """Nothing is kept."""

    def save_if_due(self, state: PartitionState) -> None:
        """Never."""

    async def settled(self) -> None:
        """Nothing is written."""


class Recovery:
    """Gives the owner a state that it may go on from. `log_refuses`: every append to this log is refused unless it
    stands where its writer expects it, so a record that does not count can only be a damaged one."""

    def __init__(self, log: Log, partition: int, keeper: Keeper, *, log_refuses: bool = False) -> None:
        self._log, self._partition, self._keeper = log, partition, keeper
        self._log_refuses = log_refuses

    async def fold(self) -> PartitionState:
        """The state at the end of `events`. Other tasks run in between, at least every few hundred commits.

        Raises `LogLost` when records are missing, `FormatTooNew` or `LogCorrupt` when they cannot be read.
        """
        state = await self._keeper.load()
        commits = await self._read_on(state)
        while True:
            try:
                await self._check_events(state)
                await self.check_commands(state)
                break
            except LogLost:
                # What is missing may have been decided, and removed, by another owner since the events were read.
                more = await self._read_on(state)
                if not more:
                    raise
                commits += more
        logger.info("partition.folded", partition=self._partition, commits=commits, runs=len(state.runs))
        return state

    async def _read_on(self, state: PartitionState) -> int:
        """Fold `events` to the end; the number of commits."""
        folded, tally = 0, Tally()
        while True:
            position, commits = await read_effective(self._log, self._partition, state.position, READ_COMMITS, tally)
            if tally.void and self._log_refuses:
                raise LogCorrupt(
                    f"events[{self._partition}] was altered: a record behind offset {position.head_offset} does not "
                    "follow on those before it"
                )
            await self._keeper.warm(state, [stream for commit in commits if (stream := commit.seal.stream) is not None])
            for commit in commits:
                events = decode_body(commit.stored_body, commit.seal.codec, commit.seal.raw_size)
                apply(state, commit, events)
                self._keeper.note(state, commit.seal.stream, events, len(commit.stored_body))
            if position == state.position and not commits:
                return folded
            state.position = position
            folded += len(commits)
            await asyncio.sleep(0)

    def thaw(self, state: PartitionState, stream: str) -> None:
        """See `Keeper.thaw`."""
        self._keeper.thaw(state, stream)

    async def warm(self, state: PartitionState, streams: Iterable[str]) -> None:
        """See `Keeper.warm`."""
        await self._keeper.warm(state, streams)

    def peek(self, stream: str) -> RunState | None:
        """See `Keeper.peek`."""
        return self._keeper.peek(stream)

    def confirmed(self, state: PartitionState, batch: Sequence[Decided]) -> None:
        """These commits are in the log and in `state`; a snapshot is taken when one is due."""
        for decided in batch:
            self._keeper.note(state, decided.stream, decided.events, len(decided.value))
        self._keeper.save_if_due(state)

    async def settled(self) -> None:
        """See `Keeper.settled`."""
        await self._keeper.settled()

    async def _check_events(self, state: PartitionState) -> None:
        """On a log that refuses, offsets are dense: an end beyond the last record says that records were removed."""
        end = (await self._log.bounds(EVENTS, self._partition)).end
        if self._log_refuses and end > state.position.next_offset:
            raise LogLost(
                f"events {state.position.next_offset} to {end - 1} of partition {self._partition} were removed"
            )

    async def check_commands(self, state: PartitionState) -> None:
        """Raises `LogLost` unless the commands behind the state are all there, and the last decided one, if it is kept,
        is the one that was decided."""
        last = state.position.last_command_offset
        bounds = await self._log.bounds(COMMANDS, self._partition)
        if bounds.start > last + 1:
            raise LogLost(
                f"commands {last + 1} to {bounds.start - 1} of partition {self._partition} were removed undecided",
                advice=None if self._log_refuses else self._how_to_accept(),
            )
        if bounds.end <= last:
            raise LogLost(f"commands of partition {self._partition} end at {bounds.end}, but {last} is decided")
        if bounds.start <= last:
            await self._check_last(state.position)

    def _how_to_accept(self) -> str:
        return f"bring them back if you can, else: dagbok doctor --accept-loss {self._partition}"

    async def _check_last(self, position: Position) -> None:
        last = position.last_command_offset
        head = await commit_at(self._log, self._partition, position.head_offset)
        found = await self._log.read(COMMANDS, self._partition, last, 1)
        if found and found[0].offset > last:
            return  # another owner has removed it just now
        if head is None or not found or command_hash(found[0].value) != head[0].command_hash:
            raise LogLost(f"command {last} of partition {self._partition} is not the one that was decided")
