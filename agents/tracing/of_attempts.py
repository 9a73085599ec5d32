"""Spans of attempts: what each event about an attempt, or about what it returned, means for them and for their task."""

from __future__ import annotations

from collections.abc import Iterator

from dagbok.agents.tracing.finish import finish_attempt
from dagbok.agents.tracing.open_spans import OpenAttempt, OpenRun, OpenTask, note
from dagbok.agents.tracing.span import AttributeValue, Note, Span
from dagbok.events.run import events as e
from dagbok.events.run.values import Claim, Failure, Usage


def opened(run: OpenRun, event: e.AttemptOpened, now_ms: int) -> tuple[Span, ...]:
    """The span begins: what it waits for a worker is a part of it."""
    task = run.tasks.get(event.task)
    if task is not None:
        task.attempt = OpenAttempt(event.epoch, event.kind, event.phase, event.pool, event.key, now_ms)
    return ()


def started(run: OpenRun, event: e.AttemptStarted, now_ms: int) -> tuple[Span, ...]:
    """An event on the span: it is claimed."""
    found = _present(run, event.task, event.epoch)
    if found is not None:
        attempt = found[1]
        attempt.claimed_ms, attempt.process = now_ms, event.claim.process
        attempt.notes = (*attempt.notes, Note("dagbok.attempt.claimed", now_ms))
    return ()


def unserved(run: OpenRun, event: e.AttemptUnserved, now_ms: int) -> tuple[Span, ...]:
    """An event on the span of the task: it may happen without end."""
    task = run.tasks.get(event.task)
    if task is not None:
        note(task, "attempt.unserved", now_ms, attempt=event.epoch, process=event.process)
    return ()


def released(run: OpenRun, event: e.AttemptReleased, now_ms: int) -> Iterator[Span]:
    """The end of the span."""
    yield from _end(run, event.task, event.epoch, now_ms, "released")


def closed(run: OpenRun, event: e.AttemptClosed, now_ms: int) -> Iterator[Span]:
    """The end of the span."""
    more: dict[str, AttributeValue] = {"dagbok.cause": event.cause}
    yield from _end(run, event.task, event.epoch, now_ms, "closed", usage=event.usage, more=more)


def lost(run: OpenRun, event: e.AttemptLost, now_ms: int) -> Iterator[Span]:
    """The end of the span, with an error, and an event on that of the task."""
    task = run.tasks.get(event.task)
    if task is not None:
        note(task, "attempt.lost", now_ms, attempt=event.epoch, code=event.code)
    yield from _end(
        run, event.task, event.epoch, now_ms, "lost", usage=event.usage, code=event.code, error=str(event.code)
    )


def failed(run: OpenRun, event: e.AttemptFailed, now_ms: int) -> Iterator[Span]:
    """The end of the span, with the exception."""
    failure = event.failure
    yield from _end(
        run,
        event.task,
        event.epoch,
        now_ms,
        "failed",
        usage=event.usage,
        code=failure.code,
        error=f"{failure.type}: {failure.message}" if failure.type else failure.message,
        notes=(_exception(failure, now_ms),),
    )


def candidate(run: OpenRun, event: e.CandidateSubmitted, now_ms: int) -> Iterator[Span]:
    """The end of the span."""
    more: dict[str, AttributeValue] = {"dagbok.artifacts": len(event.artifacts)}
    yield from _end(run, event.task, event.epoch, now_ms, "candidate", claim=event.claim, usage=event.usage, more=more)


def proposed(run: OpenRun, event: e.DecompositionProposed, now_ms: int) -> Iterator[Span]:
    """The end of the span."""
    yield from _end(run, event.task, event.epoch, now_ms, "decompose", claim=event.claim, usage=event.usage)


def accepted(run: OpenRun, event: e.DecompositionAccepted, now_ms: int) -> Iterator[Span]:
    """An event on the span of the task; the end of the worker's span when no verifier was asked."""
    task = run.tasks.get(event.task)
    if task is not None:
        note(
            task,
            "decomposition.accepted",
            now_ms,
            judge=event.judge,
            new=len(event.new),
            reused=len(event.reused),
            graph_revision=event.graph_revision,
        )
    yield from _end(run, event.task, event.epoch, now_ms, "decompose", claim=event.claim, usage=event.usage)


def refused(run: OpenRun, event: e.DecompositionRefused, now_ms: int) -> Iterator[Span]:
    """An event on the span of the task; the end of the worker's span when no verifier was asked."""
    task = run.tasks.get(event.task)
    if task is not None:
        note(task, "decomposition.refused", now_ms, code=event.code, reason=event.reason, spent=event.spent)
    yield from _end(
        run,
        event.task,
        event.epoch,
        now_ms,
        "decompose",
        claim=event.claim,
        usage=event.usage,
        code=event.code,
        error=event.reason,
    )


def judged(run: OpenRun, event: e.VerdictRecorded, now_ms: int) -> Iterator[Span]:
    """The end of a review. A verdict that does not pass is no error of it; the verdict `error` is."""
    report = event.report
    error = report.verdict == "error"
    yield from _end(
        run,
        event.task,
        event.epoch,
        now_ms,
        "verdict",
        claim=event.claim,
        usage=event.usage,
        code="verifier_error" if error else "",
        error=f"verifier {report.verifier} reports an error" if error else None,
        more={
            "dagbok.verdict": report.verdict,
            "dagbok.judged": report.kind,
            "dagbok.verifier_version": report.version,
            "dagbok.assurance": report.assurance,
        },
    )


def blocked(run: OpenRun, event: e.TaskBlocked, now_ms: int) -> Iterator[Span]:
    """An event on the span of the task, and the end of that of the attempt that says so."""
    task = run.tasks.get(event.task)
    if task is None:
        return
    note(task, "task.blocked", now_ms, code=event.code, reason=event.reason)
    if event.claim is not None:
        yield from _end(run, event.task, event.epoch, now_ms, "blocked", claim=event.claim, usage=event.usage)


def _end(
    run: OpenRun,
    id: str,
    epoch: int,
    now_ms: int,
    outcome: str,
    *,
    claim: Claim | None = None,
    usage: Usage | None = None,
    code: str = "",
    error: str | None = None,
    more: dict[str, AttributeValue] | None = None,
    notes: tuple[Note, ...] = (),
) -> Iterator[Span]:
    found = _present(run, id, epoch)
    if found is None:
        return
    task, attempt = found
    task.attempt = None
    if claim is not None and not attempt.process:
        attempt.process = claim.process  # a result may claim what was never started
    if usage is not None and (usage.tokens or usage.cost != "0"):
        run.charge(usage)
        more = {**(more or {}), "dagbok.usage.tokens": usage.tokens, "dagbok.usage.cost": float(usage.cost)}
    yield finish_attempt(run, id, task, attempt, now_ms, outcome, code=code, error=error, more=more, notes=notes)


def _present(run: OpenRun, id: str, epoch: int) -> tuple[OpenTask, OpenAttempt] | None:
    """The attempt, if it is open: what ended with an earlier event of its commit does not end twice."""
    task = run.tasks.get(id)
    if task is None or task.attempt is None or task.attempt.epoch != epoch:
        return None
    return task, task.attempt


def _exception(failure: Failure, now_ms: int) -> Note:
    """As the semantic conventions of OpenTelemetry name it."""
    words: dict[str, AttributeValue] = {
        "exception.type": failure.type or str(failure.code),
        "exception.message": failure.message,
    }
    if failure.traceback:
        words["exception.stacktrace"] = failure.traceback
    return Note("exception", now_ms, words)
