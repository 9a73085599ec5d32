"""The events of a run: facts (`docs/design/messages.md`, section 6).

Written by `agents/scheduler/decide/` alone; folded by `projections/task_graph/evolve.py`; read by `projections/views/`.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from dagbok.events.run.values import (
    NULL,
    ArtifactItem,
    AttemptKind,
    Claim,
    Decompose,
    Failure,
    Limits,
    Phase,
    Pinned,
    Report,
    SecurityContext,
    SpecEntry,
    Usage,
    Value,
)


class Event(Value, frozen=True):
    """Base of all events; the class name is the `type` in the body of a commit."""

    version: ClassVar[int] = 1


class RunStarted(Event, frozen=True):
    """The run exists. `start_digest` names tasks, roots and pinned values: the same start again is a repeat."""

    pinned: Pinned
    limits: Limits
    roots: tuple[str, ...]
    context: SecurityContext
    context_hash: str
    start_digest: str


class RunPaused(Event, frozen=True):
    """No attempt opens, starts or is dispatched."""

    reason: str = ""


class RunResumed(Event, frozen=True):
    """The run goes on."""

    reason: str = ""


class RunCancelled(Event, frozen=True):
    """Final. Every open task is cancelled with it."""

    reason: str = ""


class RunSucceeded(Event, frozen=True):
    """Final. Every root is verified."""


class RunFailed(Event, frozen=True):
    """A task failed and nothing can go on. `tasks`: the first of them (at most 100)."""

    code: str
    tasks: tuple[str, ...]


class RunBlocked(Event, frozen=True):
    """Nothing can go on before a person resolves `tasks` (at most 100 are named)."""

    code: str
    tasks: tuple[str, ...]


class RunReopened(Event, frozen=True):
    """A blocked or failed run goes on."""

    reason: str = ""


class LimitsSet(Event, frozen=True):
    """The limits from now on, and those before."""

    limits: Limits
    before: Limits


class TasksAdded(Event, frozen=True):
    """Tasks with their full specs and edges. `created_by`: the task that was decomposed."""

    tasks: tuple[SpecEntry, ...]
    graph_revision: int


class AttemptOpened(Event, frozen=True):
    """An attempt may be claimed by the `pool` that serves `key`, not before `not_before_ms` (log time)."""

    task: str
    epoch: int
    kind: AttemptKind
    phase: Phase
    input_hash: str
    pool: str
    key: str
    priority: int = 0


class AttemptStarted(Event, frozen=True):
    """The claim is bound. Times are log time in milliseconds."""

    task: str
    epoch: int
    claim: Claim
    lease_until_ms: int
    timeout_at_ms: int | None = None
    reply_to: str | None = None


class RenewedLease(Value, frozen=True, array_like=True):
    """A lease that holds until `until_ms`."""

    task: str
    epoch: int
    until_ms: int


class LeasesRenewed(Event, frozen=True):
    """Leases that hold on, and the tasks (with epoch) whose renewal is refused: their process stops them."""

    accepted: tuple[RenewedLease, ...] = ()
    refused: tuple[tuple[str, int], ...] = ()


class AttemptReleased(Event, frozen=True):
    """Handed back by its process; counts in nothing."""

    task: str
    epoch: int


class AttemptUnserved(Event, frozen=True):
    """A process of the pool does not serve the key. The attempt stays open."""

    task: str
    epoch: int
    process: str
    serves: tuple[str, ...] = ()


class AttemptClosed(Event, frozen=True):
    """Cancelled, with its cause."""

    task: str
    epoch: int
    cause: Literal["run_cancelled", "run_failed", "run_succeeded", "task_failed"]


class AttemptLost(Event, frozen=True):
    """Its lease ran out, or its process is gone."""

    task: str
    epoch: int
    code: Literal["lease_expired", "process_gone"]


class AttemptFailed(Event, frozen=True):
    """It failed, or took too long. `counted`: it spends one of the task's attempts."""

    task: str
    epoch: int
    failure: Failure
    counted: bool = True


class CandidateSubmitted(Event, frozen=True):
    """A worker's result, staged until a verdict passes. `claim` also claims an attempt that was never started."""

    task: str
    epoch: int
    claim: Claim
    artifacts: tuple[ArtifactItem, ...]
    subject: tuple[str, ...]
    outputs: msgspec.Raw = NULL
    usage: Usage = Usage()


class DecompositionProposed(Event, frozen=True):
    """A worker asks for new tasks; a verifier judges it."""

    task: str
    epoch: int
    claim: Claim
    proposal: Decompose
    digest: str
    usage: Usage = Usage()


class DecompositionAccepted(Event, frozen=True):
    """The task waits for `new` and `reused` tasks; `judge` is a verifier's key or `structure`.
    `proposal`: the whole proposal, where no `DecompositionProposed` told it before."""

    task: str
    epoch: int
    claim: Claim
    digest: str
    judge: str
    new: tuple[str, ...]
    reused: tuple[str, ...]
    graph_revision: int
    rationale: str = ""
    composition_contract: msgspec.Raw = NULL
    usage: Usage = Usage()


class DecompositionRefused(Event, frozen=True):
    """The proposal breaks a rule of the graph. `spent`: it cost an attempt."""

    task: str
    epoch: int
    claim: Claim
    proposal: Decompose
    digest: str
    code: str
    reason: str
    spent: bool
    graph_revision: int
    usage: Usage = Usage()


class VerdictRecorded(Event, frozen=True):
    """The whole report. `claim` also claims a review that was never started."""

    task: str
    epoch: int
    claim: Claim
    report_id: str
    report: Report


class TaskVerified(Event, frozen=True):
    """Final. The candidate's artifacts are published; tasks that wait for this one wake."""

    task: str
    report_id: str


class TaskBackedOff(Event, frozen=True):
    """The next attempt opens at `due_ms` (log time)."""

    task: str
    due_ms: int
    failures: int


class TaskBlocked(Event, frozen=True):
    """A person has to act, then `ResolveBlock`."""

    task: str
    code: str
    reason: str
    epoch: int = 0
    claim: Claim | None = None


class TaskUnblocked(Event, frozen=True):
    """The task may run again."""

    task: str
    note: str = ""


class TaskFailed(Event, frozen=True):
    """No attempt is left, or the failure is terminal."""

    task: str
    code: str
    reason: str


class CommandRefused(Event, frozen=True):
    """The command changed nothing. `raw`: its bytes when it could not be decoded or handled (up to 32 KiB)."""

    code: str
    reason: str
    advice: str = ""
    retry: bool = False
    raw: bytes | None = None


class CommandRepeated(Event, frozen=True):
    """The command was decided before, at `offset` of `events` in this partition."""

    offset: int


EVENTS: dict[str, type[Event]] = {
    event.__name__: event
    for event in (
        RunStarted,
        RunPaused,
        RunResumed,
        RunCancelled,
        RunSucceeded,
        RunFailed,
        RunBlocked,
        RunReopened,
        LimitsSet,
        TasksAdded,
        AttemptOpened,
        AttemptStarted,
        LeasesRenewed,
        AttemptReleased,
        AttemptUnserved,
        AttemptClosed,
        AttemptLost,
        AttemptFailed,
        CandidateSubmitted,
        DecompositionProposed,
        DecompositionAccepted,
        DecompositionRefused,
        VerdictRecorded,
        TaskVerified,
        TaskBackedOff,
        TaskBlocked,
        TaskUnblocked,
        TaskFailed,
        CommandRefused,
        CommandRepeated,
    )
}
