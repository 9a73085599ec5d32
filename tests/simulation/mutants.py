"""Rules of dagbok, each broken on purpose in one place."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence

import msgspec
import pytest

from dagbok.agents.scheduler import clockwork, decide, handle, outputs, owner
from dagbok.agents.scheduler.answers import answer_of
from dagbok.agents.scheduler.decide import attempts as decide_attempts
from dagbok.agents.scheduler.decide import guards, outcomes, sessions, verdicts
from dagbok.agents.scheduler.decide.cause import By
from dagbok.agents.scheduler.dispatch import dispatcher, lane, message
from dagbok.agents.workers import leases, outbox
from dagbok.events import rule
from dagbok.events.commit import Seal
from dagbok.events.envelope import Answer
from dagbok.events.log.port import EVENTS, Record
from dagbok.events.run import events as e
from dagbok.events.run.commands import SubmitVerdict, SuspendSession
from dagbok.events.run.values import AttemptKind, Claim
from dagbok.projections.partition import PartitionState
from dagbok.projections.snapshots import dirty
from dagbok.projections.tables import positions
from dagbok.projections.task_graph.state import Attempt, RunState, TaskNode

Mutant = Callable[[pytest.MonkeyPatch], None]
"""Breaks one rule until the end of the test."""


def commits_without_prev(patch: pytest.MonkeyPatch) -> None:
    """A reader takes every commit that follows on the last command, whatever history it was decided on."""

    def follows(position: rule.Position, partition: int, offset: int, seal: Seal) -> bool:
        return seal.after == position.last_command_offset and seal.partition == partition

    patch.setattr(rule, "is_effective", follows)


def any_commit(patch: pytest.MonkeyPatch) -> None:
    """A reader takes whatever comes."""
    patch.setattr(rule, "is_effective", lambda position, partition, offset, seal: True)


def any_claim(patch: pytest.MonkeyPatch) -> None:
    """What a stale process returns counts."""

    def held(
        run: RunState, task: str, epoch: int, claim: Claim, by: By, kind: AttemptKind | None = None
    ) -> tuple[TaskNode, Attempt]:
        _, attempt = guards.present_attempt(run, task, epoch, by)
        return guards.held_attempt(run, task, epoch, attempt.claim or claim, by, kind)

    for module in (outcomes, verdicts, decide_attempts):
        patch.setattr(module, "held_attempt", held)


def leases_that_never_end(patch: pytest.MonkeyPatch) -> None:
    """What comes after the end of a lease counts as long as no timer has noticed."""

    def held(
        run: RunState, task: str, epoch: int, claim: Claim, by: By, kind: AttemptKind | None = None
    ) -> tuple[TaskNode, Attempt]:
        return guards.held_attempt(run, task, epoch, claim, msgspec.structs.replace(by, now_ms=0), kind)

    for module in (outcomes, verdicts, decide_attempts):
        patch.setattr(module, "held_attempt", held)


def no_renewals(patch: pytest.MonkeyPatch) -> None:
    """A worker forgets to renew."""
    patch.setattr(leases.LeaseKeeper, "_keep", lambda self, held, now_s, renewals: None)


def no_redispatch(patch: pytest.MonkeyPatch) -> None:
    """What was sent and not claimed is not sent again."""
    patch.setattr(dispatcher.Dispatcher, "next_due_s", lambda self: None)
    patch.setattr(lane.LaneState, "_collect_due", lambda self, now_s: None)


def no_repeats(patch: pytest.MonkeyPatch) -> None:
    """A command without an answer is not sent again."""

    async def nothing(self: outbox.Outbox) -> None:
        """As if everything had been answered."""

    patch.setattr(outbox.Outbox, "repeat", nothing)


def repeats_decided_anew(patch: pytest.MonkeyPatch) -> None:
    """The id of a client's command is not looked up."""
    patch.setattr(handle, "_check_repeat", lambda state, command, record: None)


def no_timers(patch: pytest.MonkeyPatch) -> None:
    """Nobody fires what is due."""

    async def nothing(self: clockwork.Clockwork) -> None:
        await asyncio.sleep(0.1)

    patch.setattr(clockwork.Clockwork, "_fire", nothing)


def outputs_before_the_append(patch: pytest.MonkeyPatch) -> None:
    """Dispatches and answers leave before their commits are in the log."""
    commit = owner.Owner._commit

    async def early(self: owner.Owner, batch: Sequence[handle.Decided]) -> None:
        self._outputs.confirmed(self.state, batch)
        await commit(self, batch)

    patch.setattr(owner.Owner, "_commit", early)


def no_doubt(patch: pytest.MonkeyPatch) -> None:
    """Wherever a batch landed, the owner goes on."""

    async def commit(self: owner.Owner, batch: Sequence[handle.Decided]) -> None:
        records = [Record(decided.stream or "", decided.value) for decided in batch]
        await self._log.append(EVENTS, self._partition, records, expect=batch[0].commit.offset)
        self._outputs.confirmed(self.state, batch)
        self._recovery.confirmed(self.state, batch)
        await self._tell()

    patch.setattr(owner.Owner, "_commit", commit)


def snapshots_that_forget(patch: pytest.MonkeyPatch) -> None:
    """A snapshot does not write what has changed in a run it knows."""
    note = dirty.DirtySegments.note

    def forgetful(self: dirty.DirtySegments, run: RunState, events: Sequence[e.Event]) -> None:
        if isinstance(events[0], e.RunStarted | e.AttemptStarted):
            note(self, run, events)

    patch.setattr(dirty.DirtySegments, "note", forgetful)


def batches_written_twice(patch: pytest.MonkeyPatch) -> None:
    """A projector does not look whether another one was faster."""
    patch.setattr(positions, "advance", lambda *arguments: True)


def published_twice(patch: pytest.MonkeyPatch) -> None:
    """A passing verdict publishes once more."""

    def twice(run: RunState, command: SubmitVerdict, by: By) -> Iterator[e.Event]:
        for event in verdicts.submit(run, command, by):
            yield event
            if isinstance(event, e.TaskVerified):
                yield event

    deciders: dict[type, object] = dict(decide._DECIDERS)
    deciders[SubmitVerdict] = twice
    patch.setattr(decide, "_DECIDERS", deciders)


def sessions_forgotten(patch: pytest.MonkeyPatch) -> None:
    """The next attempt is not handed the session, and whatever turn it begins with counts."""
    patch.setattr(message, "_session", lambda node: None)

    def any_turn(run: RunState, command: SuspendSession, by: By) -> Iterator[e.Event]:
        session = run.tasks[command.task].session
        turn = 1 if session is None else session.turn + 1
        return sessions.suspend(run, msgspec.structs.replace(command, turn=turn, keep=0), by)

    deciders: dict[type, object] = dict(decide._DECIDERS)
    deciders[SuspendSession] = any_turn
    patch.setattr(decide, "_DECIDERS", deciders)


def sessions_of_anybody(patch: pytest.MonkeyPatch) -> None:
    """Who held an attempt once may put its session down."""

    def held(
        run: RunState, task: str, epoch: int, claim: Claim, by: By, kind: AttemptKind | None = None
    ) -> tuple[TaskNode, Attempt]:
        node = run.tasks[task]
        if node.attempt is None or node.attempt.kind != "work" or node.attempt.claim is None:
            return guards.held_attempt(run, task, epoch, claim, by, kind)
        return node, node.attempt

    patch.setattr(sessions, "held_attempt", held)
    patch.setattr(sessions, "_checked", lambda run, node, command: 0)


def answers_made_up(patch: pytest.MonkeyPatch) -> None:
    """Refused commands are answered as if they were accepted."""

    def accepted(state: PartitionState, decided: handle.Decided) -> Answer:
        return msgspec.structs.replace(answer_of(state, decided), accepted=True)

    patch.setattr(outputs, "answer_of", accepted)
