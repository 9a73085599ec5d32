"""What is known of one partition: its position, its clock, the commands it remembers, and its runs.

`apply` folds one effective commit. The scheduler that owns the partition, snapshots, queries and tests all use it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dagbok.events.codes import Code
from dagbok.events.commit import Commit, Seal
from dagbok.events.errors import LogCorrupt
from dagbok.events.ids import ZERO_HASH
from dagbok.events.rule import GENESIS, Position
from dagbok.events.run.commands import CLIENT_COMMANDS
from dagbok.events.run.events import CommandRefused, CommandRepeated, Event
from dagbok.projections.task_graph.evolve import evolve
from dagbok.projections.task_graph.state import At, RunState

REMEMBER_MS = 7 * 24 * 3600 * 1000
"""How long the id of a client's command is remembered, in log time."""


class Remembered(msgspec.Struct, frozen=True, gc=False):
    """The first answer to a client's command: the commit, log time, and the code when it was refused. `hash` is that of
    the command itself: the same id with other content is no repeat."""

    offset: int
    now_ms: int
    hash: str
    code: str | None = None
    events: tuple[str, ...] = ()


class PartitionState(msgspec.Struct):
    """All that a scheduler decides on. `remembered` is keyed by tenant and command id, oldest first."""

    partition: int
    position: Position = GENESIS
    clock_ms: int = 0
    runs: dict[str, RunState] = {}
    remembered: dict[str, Remembered] = {}

    def run_of(self, stream: str) -> RunState | None:
        """The run of a stream, or none when there is none (yet)."""
        return self.runs.get(stream)


def remembered_key(tenant: str, command_id: str) -> str:
    """The key of a command in `PartitionState.remembered`. Tenants hold no slash, so no two are equal."""
    return f"{tenant}/{command_id}"


def apply(state: PartitionState, commit: Commit, events: Sequence[Event]) -> None:
    """Fold one effective commit into the state, and move its position behind it.

    Raises `LogCorrupt` when the chain of the commit's stream does not fit: then the log was altered.
    """
    seal = commit.seal
    if seal.count != len(events):
        raise LogCorrupt(
            f"the commit at {state.partition}:{commit.offset} has {len(events)} events, sealed are {seal.count}"
        )
    if seal.stream is not None:
        run = _run(state, seal)
        if (seal.stream_prev, seal.stream_seq) != (run.stream_head, run.stream_seq + 1):
            raise LogCorrupt(
                f"the commit at {state.partition}:{commit.offset} does not continue its stream {seal.stream}"
            )
        for index, event in enumerate(events):
            evolve(run, event, At(state.partition, commit.offset, index, seal.now_ms, seal.command_id))
    finish(state, commit, events)


def finish(state: PartitionState, commit: Commit, events: Sequence[Event]) -> None:
    """The part of `apply` behind the events: stream chain, remembered command, clock and position."""
    seal = commit.seal
    if seal.stream is not None:
        run = state.runs[seal.stream]
        run.stream_seq += seal.count
        run.stream_head = commit.hash
    state.clock_ms = seal.now_ms
    if seal.command_type in CLIENT_COMMANDS:
        _remember(state, commit, events)
    state.position = state.position.applied(commit.offset, seal, commit.hash)


def _run(state: PartitionState, seal: Seal) -> RunState:
    stream = seal.stream or ""
    run = state.runs.get(stream)
    if run is None:
        run = state.runs[stream] = RunState(run=stream.removeprefix("run:"), tenant=seal.tenant, project=seal.project)
        run.stream_head = ZERO_HASH
    return run


def _remember(state: PartitionState, commit: Commit, events: Sequence[Event]) -> None:
    first = events[0]
    if isinstance(first, CommandRepeated) or (isinstance(first, CommandRefused) and first.retry):
        return
    seal, remembered = commit.seal, state.remembered
    code = first.code if isinstance(first, CommandRefused) else None
    if code in (Code.IDENTITY_REQUIRED, Code.IDEMPOTENCY_CONFLICT):
        return  # who sent it has no name to be remembered by; or the id belongs to the command that had it first
    names = tuple(type(event).__name__ for event in events[:20])
    key = remembered_key(seal.tenant, seal.command_id)
    remembered.pop(key, None)  # an id that comes again after its time stands at the end, where the youngest are
    remembered[key] = Remembered(commit.offset, seal.now_ms, seal.command_hash, code, names)
    while True:
        oldest = next(iter(remembered))
        if remembered[oldest].now_ms >= seal.now_ms - REMEMBER_MS:
            return
        del remembered[oldest]
