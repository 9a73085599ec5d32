"""The answer to a command, derived from its confirmed commit."""

from __future__ import annotations

from collections.abc import Sequence

from dagbok.agents.scheduler.handle import Decided
from dagbok.events.envelope import Answer
from dagbok.events.run.events import CommandRefused, CommandRepeated, Event, LeasesRenewed
from dagbok.projections.partition import PartitionState, remembered_key

MAX_NAMES = 20


def answer_of(state: PartitionState, decided: Decided) -> Answer:
    """What became of the command. A repeat gets the first answer, as far as it is remembered."""
    first = decided.events[0]
    if isinstance(first, CommandRepeated):
        return _remembered_answer(state, decided, first)
    return answer_to(decided.command.id, (decided.commit.seal.partition, decided.commit.offset), decided.events)


def answer_to(id: str, at: tuple[int, int], events: Sequence[Event]) -> Answer:
    """The answer to a command `id` whose commit at (partition, offset) has these events, and is no repeat."""
    first = events[0]
    if isinstance(first, CommandRefused):
        return Answer(
            id=id,
            accepted=False,
            at=at,
            code=first.code,
            reason=first.reason,
            advice=first.advice,
            retry=first.retry,
        )
    stopped = first.refused if isinstance(first, LeasesRenewed) else ()
    return Answer(id=id, accepted=True, at=at, events=_names(events), stopped=stopped)


def _remembered_answer(state: PartitionState, decided: Decided, repeated: CommandRepeated) -> Answer:
    command = decided.command
    known = state.remembered.get(remembered_key(command.tenant, command.id))
    return Answer(
        id=command.id,
        accepted=known is None or known.code is None,
        at=(decided.commit.seal.partition, repeated.offset),
        code=None if known is None else known.code,
        events=() if known is None else known.events,
    )


def _names(events: Sequence[Event]) -> tuple[str, ...]:
    return tuple([type(event).__name__ for event in events[:MAX_NAMES]])
