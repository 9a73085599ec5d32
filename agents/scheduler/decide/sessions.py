"""Decides what workers put down of their sessions, and who goes on with one."""

from __future__ import annotations

from collections.abc import Iterator

from dagbok.agents.scheduler.decide.budget import artifact_breach
from dagbok.agents.scheduler.decide.cause import By, Repeated
from dagbok.agents.scheduler.decide.guards import held_attempt, known_task
from dagbok.agents.scheduler.decide.outcomes import check_item
from dagbok.events.codes import Code
from dagbok.events.errors import Refused
from dagbok.events.run.commands import SuspendSession
from dagbok.events.run.events import Event, SessionResumed, SessionSuspended
from dagbok.events.session import NO_SESSION, session_digest
from dagbok.projections.task_graph.state import RunState, TaskNode

MAX_PARTS = 64
"""Parts that grow geometrically are never so many."""


def suspend(run: RunState, command: SuspendSession, by: By) -> Iterator[Event]:
    """Only who holds the running attempt puts its session down, and only behind the turn that it went on from."""
    before = known_task(run, command.task).session
    if before is not None and before.by[0] == by.command_id:
        raise Repeated(before.by[1])
    node, attempt = held_attempt(run, command.task, command.epoch, command.claim, by, "work")
    if attempt.claim is None:
        raise Refused(
            Code.LEASE_REJECTED,
            f"attempt {command.epoch} of task {node.id} is not claimed",
            advice="claim it first: a worker that is declared pure keeps no session",
        )
    kept = _checked(run, node, command)
    yield SessionSuspended(
        task=node.id,
        epoch=command.epoch,
        claim=command.claim,
        turn=command.turn,
        keep=command.keep,
        part=command.part,
        digest=session_digest(NO_SESSION if before is None else before.digest, command.keep, command.part.sha256),
        size_bytes=command.part.size_bytes + kept,
    )


def resume(node: TaskNode, epoch: int) -> Iterator[Event]:
    """The attempt that starts goes on with the session, if the task has one."""
    if node.session is not None:
        yield SessionResumed(node.id, epoch, node.session.turn, node.session.digest)


def _checked(run: RunState, node: TaskNode, command: SuspendSession) -> int:
    """The bytes of the parts that are kept. Raises `Refused`."""
    turn, parts = (0, ()) if node.session is None else (node.session.turn, node.session.parts)
    if command.turn != turn + 1:
        raise Refused(
            Code.VERSION_CONFLICT,
            f"turn {command.turn} of the session of task {node.id} does not follow turn {turn}",
            advice="go on from the session as it is: what you have is older",
        )
    if not 0 <= command.keep <= min(len(parts), MAX_PARTS - 1):
        said = f"{command.keep} of {len(parts)} parts of a session to keep, below {MAX_PARTS}"
        raise Refused(Code.INVALID_OUTCOME, said)
    check_item(command.part)
    if breach := artifact_breach(run, (command.part,)):
        raise Refused(Code.BUDGET_EXHAUSTED, breach)
    return sum([part.size_bytes for part in parts[: command.keep]])
