"""Events about attempts: opened, claimed, renewed, and how they end without a result."""

from __future__ import annotations

from typing import Literal

from dagbok.events.run.event import Event
from dagbok.events.run.values import AttemptKind, Claim, Failure, Phase, Usage, Value

CloseCause = Literal[
    "run_cancelled",
    "run_failed",
    "run_succeeded",
    "run_amended",
    "budget_exhausted",
    "task_cancelled",
    "task_superseded",
]


class AttemptOpened(Event, frozen=True):
    """An attempt may be claimed by the `pool` that serves `key`. `reserved`: of the budget of the run, until it
    ends."""

    task: str
    epoch: int
    kind: AttemptKind
    phase: Phase
    input_hash: str
    pool: str
    key: str
    priority: int = 0
    reserved: Usage | None = None


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
    """Handed back by its process; counts in nothing but what it used."""

    task: str
    epoch: int
    usage: Usage = Usage()


class AttemptUnserved(Event, frozen=True):
    """A process of the pool does not serve the key. The attempt stays open."""

    task: str
    epoch: int
    process: str
    serves: tuple[str, ...] = ()


class AttemptClosed(Event, frozen=True):
    """Cancelled, with its cause. `usage`: what it is charged, which is what was reserved for it if it ran."""

    task: str
    epoch: int
    cause: CloseCause
    usage: Usage = Usage()


class AttemptLost(Event, frozen=True):
    """Its lease ran out, or its process is gone. `usage`: what it is charged, as nobody can tell what it used."""

    task: str
    epoch: int
    code: Literal["lease_expired", "process_gone"]
    usage: Usage = Usage()


class AttemptFailed(Event, frozen=True):
    """It failed, or took too long. `counted`: it spends one of the task's attempts."""

    task: str
    epoch: int
    failure: Failure
    counted: bool = True
    usage: Usage = Usage()
