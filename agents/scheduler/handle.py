"""From one record of `commands` to one commit: read, decide, fold, seal. Pure: the same state and record give the
same bytes.

The owner (`owner.py`) appends what comes out and lets nothing leave before it is confirmed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from dagbok.agents.scheduler.decide import By, Repeated
from dagbok.agents.scheduler.execute import StateBroken, execute
from dagbok.agents.scheduler.inbox import NOBODY, Unreadable, read_data, read_envelope
from dagbok.events.body import TooLarge, encode_body
from dagbok.events.codes import Code
from dagbok.events.commit import Commit, Seal, encode_value, value_hash
from dagbok.events.envelope import REPLY_TO, Command, command_hash
from dagbok.events.errors import Refused
from dagbok.events.ids import ZERO_HASH
from dagbok.events.log.port import StoredRecord
from dagbok.events.run.commands import CLIENT_COMMANDS, StartRun
from dagbok.events.run.events import CommandRefused, CommandRepeated, Event
from dagbok.events.traceparent import TRACEPARENT, passed_on
from dagbok.projections.partition import PartitionState, finish, remembered_key
from dagbok.projections.task_graph.state import RunState

MAX_RAW_BYTES = 32 * 1024
MAX_REASON_CHARS = 2_000


class Decided(msgspec.Struct, frozen=True, gc=False):
    """A command with the commit it led to: the record value to append, and the events as they are in memory."""

    command: Command
    command_offset: int
    commit: Commit
    value: bytes
    events: Sequence[Event]
    reply_to: str | None

    @property
    def stream(self) -> str | None:
        """The stream of the commit; none for a refusal that belongs to no stream."""
        return self.commit.seal.stream


Thaw = Callable[[PartitionState, str], None]
"""Brings the run of a stream into memory, if it is kept outside: see `Keeper.thaw`."""


def all_in_memory(state: PartitionState, stream: str) -> None:
    """A `Thaw` for states that hold all of their runs."""


def handle(state: PartitionState, record: StoredRecord, partitions: int, thaw: Thaw = all_in_memory) -> Decided:
    """Decide the next command and fold its events. Raises `StateBroken` when the state must be folded anew; the
    record then gets its refusal by `refuse_broken`."""
    try:
        command = read_envelope(record)
    except Unreadable as error:
        refusal = refused(Refused(Code.UNDECODABLE, str(error)), record.value)
        return _sealed(state, record, NOBODY, None, [refusal])
    # By the stream that the command names: the key of the record decides nothing.
    thaw(state, command.stream)
    run, events = _decide(state, record, command, partitions)
    return _sealed(state, record, command, run, events)


def refuse_broken(
    state: PartitionState, record: StoredRecord, cause: BaseException, thaw: Thaw = all_in_memory
) -> Decided:
    """The commit of a command that broke the state: changes nothing, keeps the raw bytes for whoever looks into it."""
    try:
        command = read_envelope(record)
    except Unreadable:
        command = NOBODY
    code = Code.TOO_LARGE if isinstance(cause.__cause__, TooLarge) else Code.INTERNAL_ERROR
    thaw(state, command.stream)
    refusal = refused(Refused(code, str(cause)), record.value)
    try:
        return _sealed(state, record, command, _known_run(state, command), [refusal])
    except StateBroken as error:
        # Not even a seal can name it: its fields are too long together.
        refusal = refused(Refused(Code.UNDECODABLE, str(error)), record.value)
        return _sealed(state, record, NOBODY, None, [refusal])


def refused(error: Refused, raw: bytes | None = None) -> CommandRefused:
    """The event of a refusal."""
    return CommandRefused(
        code=error.code.value,
        reason=error.message[:MAX_REASON_CHARS],
        advice=error.advice,
        retry=error.retry,
        raw=None if raw is None else raw[:MAX_RAW_BYTES],
    )


def _decide(
    state: PartitionState, record: StoredRecord, command: Command, partitions: int
) -> tuple[RunState | None, Sequence[Event]]:
    run = _known_run(state, command)
    try:
        data = read_data(command, record, state.partition, partitions)
        if command.type in CLIENT_COMMANDS:
            _check_repeat(state, command, record)
        if run is None:
            if not isinstance(data, StartRun) or command.stream in state.runs:
                raise Refused(Code.NOT_FOUND, f"there is no {command.stream} in {command.tenant}/{command.project}")
            run = RunState(run=command.stream.removeprefix("run:"), tenant=command.tenant, project=command.project)
        by = By(command.id, command.actor, max(state.clock_ms, record.append_ms))
        return run, execute(run, data, by, state.partition, state.position.next_offset)
    except Repeated as answer:
        return run, [CommandRepeated(answer.offset)]
    except Refused as error:
        raw = record.value if error.code in (Code.UNDECODABLE, Code.UNSUPPORTED) else None
        return (run if run is not None and run.exists else None), [refused(error, raw)]


def _known_run(state: PartitionState, command: Command) -> RunState | None:
    """The run of the command's own tenant and project. Of a foreign run nothing is known, not even that it is there."""
    run = state.runs.get(command.stream)
    if run is None or (run.tenant, run.project) != (command.tenant, command.project):
        return None
    return run


def _check_repeat(state: PartitionState, command: Command, record: StoredRecord) -> None:
    first = state.remembered.get(remembered_key(command.tenant, command.id))
    if first is None:
        return
    if first.hash != command_hash(record.value):
        raise Refused(
            Code.IDEMPOTENCY_CONFLICT, f"another command had the id {command.id} before: repeat its very bytes"
        )
    raise Repeated(first.offset)


def _sealed(
    state: PartitionState, record: StoredRecord, command: Command, run: RunState | None, events: Sequence[Event]
) -> Decided:
    position, offset = state.position, state.position.next_offset
    try:
        stored_body, codec, raw_size = encode_body(events)
        seal = Seal(
            actor=command.actor,
            after=position.last_command_offset,
            cause=command.cause,
            codec=codec,
            command_hash=command_hash(record.value),
            command_id=command.id,
            command_offset=record.offset,
            command_type=command.type,
            count=len(events),
            first_sent_ms=command.first_sent_ms,
            now_ms=max(state.clock_ms, record.append_ms),
            offset=offset,
            partition=state.partition,
            prev=position.head_hash,
            project=command.project,
            raw_size=raw_size,
            stream=None if run is None else run.stream,
            stream_prev=ZERO_HASH if run is None else run.stream_head,
            stream_seq=0 if run is None else run.stream_seq + 1,
            tenant=command.tenant,
        )
        value = encode_value(seal, stored_body)
    except Exception as error:
        raise StateBroken(f"{command.type} cannot be committed: {error}") from error
    commit = Commit(offset, value_hash(value), seal, stored_body, passed_on(record.headers.get(TRACEPARENT)))
    if run is not None:
        state.runs.setdefault(run.stream, run)
    finish(state, commit, events)
    return Decided(command, record.offset, commit, value, events, record.headers.get(REPLY_TO))
