"""An operator accepts that commands were removed undecided: one commit says so, and the partition goes on behind them
(architecture 3.3).

It counts by the same rule as every other. Who accepts needs no partition of its own: an owner that decides at the same
moment makes this commit void, or this one makes its batch void, and either folds what came of it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Final

import structlog

from dagbok.agents.scheduler.inbox import NOBODY
from dagbok.events.body import encode_body
from dagbok.events.codes import Code
from dagbok.events.commit import Commit, Seal, encode_value, value_hash
from dagbok.events.errors import LogError, LogLost, Refused
from dagbok.events.ids import ZERO_HASH
from dagbok.events.log.clock import Clock, system_ms
from dagbok.events.log.port import COMMANDS, EVENTS, Log, Record
from dagbok.events.rule import GENESIS, Position
from dagbok.events.run.events import CommandsLost
from dagbok.projections.reading import check_stand, read_effective

logger = structlog.get_logger(__name__)

ACCEPT_LOSS: Final = "AcceptLoss"
READ_COMMITS: Final = 500


async def accept_loss(
    log: Log, partition: int, *, actor: str, known: Iterable[Position] = (), clock: Clock = system_ms
) -> CommandsLost:
    """Have the commands of a partition that were removed undecided count as lost; what was lost.

    `actor`: who accepts it. `known`: where snapshots and tables stand: when `events` does not have what they were built
    from, commands only seem to be undecided. Raises `Refused` (`not_found`) when nothing is lost, `LogLost` when
    something else is (`events`, or the end of `commands`), and `LogError` (`log_conflict`) when somebody else has
    written meanwhile: then nothing was changed.
    """
    bounds = await log.bounds(COMMANDS, partition)  # before `events`: an owner removes only what it has decided
    for stand in known:
        await check_stand(log, partition, stand)
    position, clock_ms = await _end(log, partition, GENESIS, 0)
    last = position.last_command_offset
    if bounds.end <= last:
        raise LogLost(f"commands of partition {partition} end at {bounds.end}, but {last} is decided")
    if bounds.start <= last + 1:
        raise Refused(
            Code.NOT_FOUND,
            f"no command of partition {partition} was removed undecided",
            advice="nothing: there is no loss to accept",
        )
    id = secrets.token_hex(16)
    commit, value, event = lost_commit(position, partition, bounds.start, clock_ms, actor=actor, id=id, sent_ms=clock())
    doubt: LogError | None = None
    try:
        await log.append(EVENTS, partition, [Record(f"partition:{partition}", value)], expect=commit.offset)
    except LogError as error:
        doubt = error
    # What the append says is not the last word: the log is.
    if not await _follows(log, partition, position, commit.hash):
        if doubt is not None and doubt.code != Code.LOG_CONFLICT:
            raise doubt
        raise LogError(f"somebody else writes for partition {partition}: nothing was changed", code=Code.LOG_CONFLICT)
    logger.warning(
        "partition.loss_accepted", partition=partition, start=event.from_offset, end=event.to_offset, actor=actor
    )
    return event


def lost_commit(
    position: Position, partition: int, start: int, clock_ms: int, *, actor: str, id: str, sent_ms: int
) -> tuple[Commit, bytes, CommandsLost]:
    """The commit of a reader at `position` by which all commands below `start` are decided, as lost; its value and its
    event. It belongs to no stream and no tenant, and log time stands still over it."""
    event = CommandsLost(from_offset=position.last_command_offset + 1, to_offset=start - 1)
    stored_body, codec, raw_size = encode_body([event])
    seal = Seal(
        actor=actor,
        after=position.last_command_offset,
        cause=None,
        codec=codec,
        command_hash=ZERO_HASH,
        command_id=id,
        command_offset=event.to_offset,
        command_type=ACCEPT_LOSS,
        count=1,
        first_sent_ms=sent_ms,
        now_ms=clock_ms,
        offset=position.next_offset,
        partition=partition,
        prev=position.head_hash,
        project=NOBODY.project,
        raw_size=raw_size,
        stream=None,
        stream_prev=ZERO_HASH,
        stream_seq=0,
        tenant=NOBODY.tenant,
    )
    value = encode_value(seal, stored_body)
    return Commit(position.next_offset, value_hash(value), seal, stored_body), value, event


async def _end(log: Log, partition: int, position: Position, clock_ms: int) -> tuple[Position, int]:
    """The end of `events`, and log time there."""
    while True:
        before = position
        position, commits = await read_effective(log, partition, position, READ_COMMITS)
        if commits:
            clock_ms = commits[-1].seal.now_ms
        if position == before:
            return position, clock_ms


async def _follows(log: Log, partition: int, position: Position, hash: str) -> bool:
    """Whether the next commit that counts behind `position` is the one with this hash."""
    while True:
        found, commits = await read_effective(log, partition, position, READ_COMMITS)
        if commits:
            return commits[0].hash == hash
        if found == position:
            return False
        position = found
