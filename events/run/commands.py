"""The commands of a run: requests, which its decider may refuse (`docs/design/messages.md`, section 5).

Decided in `agents/scheduler/decide/`; the events they cause are in `events/run/events.py`.
Commands of clients are repeatable by id, the others by state (epoch, claim, deadline).
"""

from __future__ import annotations

from typing import ClassVar, Final, Literal

import msgspec

from dagbok.events.run.values import (
    ArtifactItem,
    Claim,
    Failure,
    FailurePolicy,
    Limits,
    OutcomeData,
    Pinned,
    Report,
    SecurityContext,
    Spec,
    Usage,
    Value,
    VerifierPin,
)

MAX_RETRY_AFTER_MS: Final = 24 * 3600 * 1000
"""Nobody parks a task for longer by a failure."""


class RunCommand(Value, frozen=True):
    """Base of the commands of a run; the class name is the `type` of the envelope."""

    version: ClassVar[int] = 1


class StartRun(RunCommand, frozen=True):
    """Begin a run with its first tasks. The same start again is a repeat; another one under the same id is refused."""

    tasks: tuple[Spec, ...]
    roots: tuple[str, ...]
    pinned: Pinned
    limits: Limits = Limits()
    context: SecurityContext = SecurityContext(user="local")


class PauseRun(RunCommand, frozen=True):
    """No attempt opens, starts or is dispatched until `ResumeRun`; what runs may finish."""

    reason: str = ""


class ResumeRun(RunCommand, frozen=True):
    """Go on after `PauseRun`."""

    reason: str = ""


class CancelRun(RunCommand, frozen=True):
    """End the run: every open task is cancelled, every attempt closed."""

    reason: str = ""


class SetLimits(RunCommand, frozen=True):
    """Raise limits, or set budgets that the run does not have yet; none may become smaller, or begin below what is used
    and reserved. `named`: the only ones that change; none: all of `limits`. One that is none in `limits` stays."""

    limits: Limits
    named: tuple[str, ...] | None = None


class ResolveBlock(RunCommand, frozen=True):
    """A person did what a blocked task waits for: it may run again."""

    task: str
    note: str = ""


class AmendRun(RunCommand, frozen=True):
    """Change what the run is bound to, on record; none and keys that are not named stay as they are. Reviews that run
    under a verifier that changes begin anew."""

    verifiers: dict[str, VerifierPin] = msgspec.field(default_factory=dict)
    failure_policy: FailurePolicy | None = None
    max_depth: int | None = None
    max_decompositions: int | None = None
    reason: str = ""


class RetryTask(RunCommand, frozen=True):
    """A failed task runs again, with all its attempts; a run that failed goes on."""

    task: str
    note: str = ""


class SupersedeTask(RunCommand, frozen=True):
    """Another task takes the place of one that is not verified: those that wait for the old one wait for it.
    `expected_graph_revision`: refuse when the graph has changed since; none: as it is."""

    task: str
    replacement: Spec
    expected_graph_revision: int | None = None


class CancelTask(RunCommand, frozen=True):
    """End one branch: the task and what was created below it, as far as nothing else waits for that."""

    task: str
    reason: str = ""


class StartAttempt(RunCommand, frozen=True):
    """Claim an open attempt before running it. The first claim decided binds the epoch."""

    task: str
    epoch: int
    claim: Claim
    reply_to: str | None = None


class Renewal(Value, frozen=True, array_like=True):
    """One lease to renew: task, epoch, claim."""

    task: str
    epoch: int
    claim: Claim


class RenewLeases(RunCommand, frozen=True):
    """Renew the leases of one process in one run."""

    renewals: tuple[Renewal, ...]


class SubmitOutcome(RunCommand, frozen=True):
    """What a worker returned. A pure worker may leave `StartAttempt` out: this then claims and closes the attempt."""

    task: str
    epoch: int
    claim: Claim
    input_hash: str
    outcome: OutcomeData
    usage: Usage = Usage()


class SuspendSession(RunCommand, frozen=True):
    """Put down the session of a task after a turn, in a running attempt. Its first `keep` parts stay, `part` follows
    them in place of all others. `turn` is one more than that of the session as it is: whoever has an older one is
    refused."""

    task: str
    epoch: int
    claim: Claim
    turn: int
    part: ArtifactItem
    keep: int = 0


class FailAttempt(RunCommand, frozen=True):
    """The attempt failed; the cause is kept. `retry_after_ms`: before this is over there is no other attempt; the
    backoff comes on top. What is above a day counts as a day, what is below zero as zero."""

    task: str
    epoch: int
    claim: Claim
    failure: Failure
    usage: Usage = Usage()
    retry_after_ms: int = 0


class ReleaseAttempt(RunCommand, frozen=True):
    """Hand an attempt back on shutdown; nothing is counted but what it used."""

    task: str
    epoch: int
    claim: Claim
    usage: Usage = Usage()


class RejectAttempt(RunCommand, frozen=True):
    """This process serves other keys: the attempt stays open, visibly."""

    task: str
    epoch: int
    process: str
    serves: tuple[str, ...] = ()


class SubmitVerdict(RunCommand, frozen=True):
    """What a verifier says of a candidate or a decomposition. The binding of `report` is compared when it is
    decided."""

    task: str
    epoch: int
    claim: Claim
    report: Report
    usage: Usage = Usage()


TimerKind = Literal["lease", "timeout", "backoff", "wall"]


class FireTimer(RunCommand, frozen=True):
    """A deadline of the state has passed: of a lease, a timeout (both of an attempt), a backoff, or the wall time of
    the run (which names no task)."""

    kind: TimerKind
    task: str
    epoch: int
    deadline_ms: int


class ReportGone(RunCommand, frozen=True):
    """A process is surely gone (its lock is free): what it claimed is lost now rather than when its leases end."""

    process: str


CLIENT_COMMANDS: frozenset[str] = frozenset(
    command.__name__
    for command in (
        StartRun,
        PauseRun,
        ResumeRun,
        CancelRun,
        SetLimits,
        AmendRun,
        ResolveBlock,
        RetryTask,
        SupersedeTask,
        CancelTask,
    )
)
"""Commands that are remembered by id for seven days of log time."""

RUN_COMMANDS: dict[str, type[RunCommand]] = {
    command.__name__: command
    for command in (
        StartRun,
        PauseRun,
        ResumeRun,
        CancelRun,
        SetLimits,
        AmendRun,
        ResolveBlock,
        RetryTask,
        SupersedeTask,
        CancelTask,
        StartAttempt,
        RenewLeases,
        SuspendSession,
        SubmitOutcome,
        FailAttempt,
        ReleaseAttempt,
        RejectAttempt,
        SubmitVerdict,
        FireTimer,
        ReportGone,
    )
}

_DECODERS = {name: msgspec.json.Decoder(command) for name, command in RUN_COMMANDS.items()}


def decode_run_command(type_name: str, data: bytes | msgspec.Raw) -> RunCommand:
    """The command of a known type. Raises `msgspec.MsgspecError` when the data does not fit it."""
    return _DECODERS[type_name].decode(data)
