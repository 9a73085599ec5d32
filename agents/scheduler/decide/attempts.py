"""Decides what workers and verifiers say of their attempts: claims, renewals, hand-backs, failures."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from dagbok.agents.scheduler.decide.cause import By, Repeated
from dagbok.agents.scheduler.decide.guards import check_claim, held_attempt, present_attempt
from dagbok.agents.scheduler.decide.payload import check_usage
from dagbok.agents.scheduler.decide.proceed import proceed
from dagbok.agents.scheduler.decide.retry import retry_review, retry_work
from dagbok.agents.scheduler.decide.sessions import resume
from dagbok.events.codes import Code
from dagbok.events.errors import Refused
from dagbok.events.run.commands import FailAttempt, RejectAttempt, ReleaseAttempt, RenewLeases, StartAttempt
from dagbok.events.run.events import (
    AttemptFailed,
    AttemptReleased,
    AttemptStarted,
    AttemptUnserved,
    Event,
    LeasesRenewed,
    RenewedLease,
    TaskFailed,
)
from dagbok.events.run.values import MAX_MESSAGE_CHARS, MAX_TRACEBACK_CHARS, Failure
from dagbok.projections.task_graph.state import RunState


def start(run: RunState, command: StartAttempt, by: By) -> Iterator[Event]:
    """The first claim decided binds the epoch; the same claim again is a repeat."""
    check_claim(command.claim)
    node, attempt = present_attempt(run, command.task, command.epoch, by)
    if attempt.claim == command.claim:
        raise Repeated(attempt.started_by[1])
    if attempt.claim is not None:
        raise Refused(Code.ATTEMPT_CLAIMED, f"attempt {command.epoch} of task {node.id} has another claim")
    if run.status == "paused":
        raise Refused(Code.RUN_PAUSED, f"run {run.run} is paused")
    timeout_ms = node.spec.timeout_ms if attempt.kind == "work" else None
    yield AttemptStarted(
        task=node.id,
        epoch=command.epoch,
        claim=command.claim,
        lease_until_ms=by.now_ms + node.spec.lease_ms,
        timeout_at_ms=None if timeout_ms is None else by.now_ms + timeout_ms,
        reply_to=command.reply_to,
    )
    if attempt.kind == "work":
        yield from resume(node, command.epoch)


def renew(run: RunState, command: RenewLeases, by: By) -> Iterator[Event]:
    """Each lease by itself: what is closed, claimed by others or over is refused, the rest holds on."""
    accepted: list[RenewedLease] = []
    refused: list[tuple[str, int]] = []
    for renewal in command.renewals:
        try:
            node, attempt = held_attempt(run, renewal.task, renewal.epoch, renewal.claim, by)
        except (Refused, Repeated):
            refused.append((renewal.task, renewal.epoch))
            continue
        if attempt.claim is None:
            refused.append((renewal.task, renewal.epoch))
        elif attempt.renewed_by[0] == by.command_id:
            raise Repeated(attempt.renewed_by[1])
        else:
            accepted.append(RenewedLease(node.id, renewal.epoch, by.now_ms + node.spec.lease_ms))
    if not accepted:
        raise Refused(Code.LEASE_REJECTED, "none of the leases can be renewed")
    yield LeasesRenewed(tuple(accepted), tuple(refused))


def release(run: RunState, command: ReleaseAttempt, by: By) -> Iterator[Event]:
    """Handed back: it opens again at once and nothing is counted."""
    node, _ = held_attempt(run, command.task, command.epoch, command.claim, by)
    check_usage(command.usage)
    yield AttemptReleased(node.id, command.epoch, command.usage)
    yield from proceed(run, by.now_ms)


def reject(run: RunState, command: RejectAttempt, by: By) -> Iterator[Event]:
    """No such key in this process: the attempt stays open, visibly, and is sent again later."""
    node, attempt = present_attempt(run, command.task, command.epoch, by)
    before, offset = attempt.rejected_by.get(command.process, ("", -1))
    if before == by.command_id:
        raise Repeated(offset)
    if attempt.claim is not None:
        raise Refused(Code.ATTEMPT_CLAIMED, f"attempt {command.epoch} of task {node.id} is claimed")
    yield AttemptUnserved(node.id, command.epoch, command.process, command.serves)


def fail(run: RunState, command: FailAttempt, by: By) -> Iterator[Event]:
    """A worker's failure spends an attempt or, when terminal, ends the task. A verifier's asks the
    verifier again or, when terminal, blocks the task."""
    node, attempt = held_attempt(run, command.task, command.epoch, command.claim, by)
    check_usage(command.usage)
    failure = _trimmed(command.failure)
    yield AttemptFailed(node.id, command.epoch, failure, counted=attempt.kind == "work", usage=command.usage)
    reason = f"{failure.type}: {failure.message}" if failure.type else failure.message
    if attempt.kind == "verify":
        again = failure.failure == "retryable"
        yield from retry_review(run, node, reason, by, again=again, retry_after_ms=command.retry_after_ms)
    elif failure.failure == "terminal":
        yield TaskFailed(node.id, failure.code, reason)
        yield from proceed(run, by.now_ms)
    else:
        yield from retry_work(run, node, failure.code, reason, by, retry_after_ms=command.retry_after_ms)


def _trimmed(failure: Failure) -> Failure:
    return msgspec.structs.replace(
        failure,
        message=failure.message[:MAX_MESSAGE_CHARS],
        traceback=failure.traceback[-MAX_TRACEBACK_CHARS:],
    )
