"""An attempt that this process holds: its claim, its lease by the process's own clock, and how to stop it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import structlog

from dagbok.agents.queue.port import AttemptKey, attempt_of
from dagbok.agents.workers.context import TaskContext
from dagbok.events.envelope import Dispatch
from dagbok.events.run.values import Claim

logger = structlog.get_logger(__name__)

LONGEST_CLAIM_PAUSE_S = 60.0


@dataclass(slots=True, eq=False)
class Held:
    """`began_s` and `leased_s` are seconds of the process's monotonic clock; `leased_s` is when the claim or the last
    renewal that was acknowledged was *sent*, so the lease is surely not over before `leased_s` + its length.
    `claim_after_s`: when a claim that was refused for the present may be tried again."""

    dispatch: Dispatch
    claim: Claim
    context: TaskContext
    began_s: float
    claimed: bool = False
    claiming: bool = False
    claims_refused: int = 0
    claim_after_s: float = 0.0
    leased_s: float = 0.0
    renewed_s: float = 0.0
    submitted: bool = False
    stopped: str | None = None
    task: asyncio.Task[None] | None = field(default=None, repr=False)

    @property
    def key(self) -> AttemptKey:
        """What names the attempt."""
        return attempt_of(self.dispatch)

    @property
    def ids(self) -> dict[str, str | int]:
        """What a log line says of the attempt."""
        return {"run": self.dispatch.run, "task": self.dispatch.task, "epoch": self.dispatch.epoch}

    @property
    def lease_s(self) -> float:
        """How long a lease lasts."""
        return self.dispatch.spec.lease_ms / 1000

    def lease_begins(self, sent_s: float) -> None:
        """The claim, or a renewal, that was sent at `sent_s` is acknowledged."""
        self.claimed = True
        self.leased_s = max(self.leased_s, sent_s)

    def claim_put_off(self, now_s: float) -> None:
        """The claim was refused for the present: try it again, later each time."""
        self.claiming = False
        self.claim_after_s = now_s + min(2.0 ** min(self.claims_refused, 30), LONGEST_CLAIM_PAUSE_S)
        self.claims_refused += 1

    def stop(self, reason: str) -> None:
        """Nobody wants the result any more: tell the function, and cancel it where that is possible. A thread cannot be
        stopped; it can look at `TaskContext.cancelled`."""
        if self.stopped is not None or self.submitted:
            return
        logger.info("attempt.stopped", **self.ids, why=reason)
        self.stopped = reason
        self.context.cancelled = True
        if self.task is not None:
            self.task.cancel()
