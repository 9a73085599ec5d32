"""The history of every attempt, told from the events alone: opened, claimed, renewed, and ended once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from dagbok.events.commit import Commit, Seal
from dagbok.events.run import events as e
from dagbok.events.run.values import Claim
from dagbok.testing.simulation.violated import Violated
from dagbok.testing.simulation.world import World

ENDING: Final = (
    e.AttemptReleased,
    e.AttemptClosed,
    e.AttemptLost,
    e.AttemptFailed,
    e.CandidateSubmitted,
    e.DecompositionProposed,
    e.VerdictRecorded,
)


class Decision(msgspec.Struct, frozen=True):
    """An effective commit with its events."""

    commit: Commit
    events: Sequence[e.Event]

    @property
    def first(self) -> e.Event:
        """What tells an answer."""
        return self.events[0]


class Open(msgspec.Struct):
    """An attempt that is open. `sent_ms`: when its claim was first sent. Milliseconds."""

    epoch: int
    claim: Claim | None = None
    sent_ms: int = 0
    lease_until_ms: int = 0


class AttemptAudit:
    """No attempt ends twice, and what a worker returned counts only under its claim and before its lease is over."""

    def __init__(self, world: World, decisions: Sequence[Decision]) -> None:
        self._world, self._decisions = world, decisions
        self._open: dict[tuple[str, str], Open] = {}
        self._epochs: dict[tuple[str, str], int] = {}
        self._verified: set[tuple[str, str]] = set()

    def check(self) -> None:
        """Raises `Violated`."""
        for decision in self._decisions:
            seal = decision.commit.seal
            for event in decision.events:
                self._event(seal.stream or "", event, seal)

    def _event(self, stream: str, event: e.Event, seal: Seal) -> None:
        task = getattr(event, "task", None)
        if not isinstance(task, str):
            if isinstance(event, e.LeasesRenewed):
                for lease in event.accepted:
                    self._present(stream, lease.task, lease.epoch, "renewed").lease_until_ms = lease.until_ms
            return
        key = (stream, task)
        if isinstance(event, e.AttemptOpened):
            self._hold(key not in self._open, f"{key}: attempt {event.epoch} opens while another one is open")
            self._hold(event.epoch == self._epochs.get(key, 0) + 1, f"{key}: epoch {event.epoch} is not the next")
            self._epochs[key] = event.epoch
            self._open[key] = Open(event.epoch)
        elif isinstance(event, e.AttemptStarted):
            attempt = self._present(stream, task, event.epoch, "claimed")
            self._hold(attempt.claim is None, f"{key}: attempt {event.epoch} is claimed twice")
            attempt.claim, attempt.lease_until_ms = event.claim, event.lease_until_ms
            attempt.sent_ms = seal.first_sent_ms
        elif isinstance(event, e.TaskVerified):
            self._hold(key not in self._verified, f"{key} is published twice")
            self._verified.add(key)
        elif isinstance(event, ENDING) or self._ends_directly(stream, event):
            self._end(key, event, seal.now_ms)

    def _ends_directly(self, stream: str, event: e.Event) -> bool:
        """Without a review: accepted or refused by the built-in check, or blocked by its worker."""
        if isinstance(event, e.TaskBlocked):
            return event.claim is not None
        if isinstance(event, e.DecompositionAccepted | e.DecompositionRefused):
            attempt = self._open.get((stream, event.task))
            return attempt is not None and attempt.epoch == event.epoch
        return False

    def _end(self, key: tuple[str, str], event: e.Event, now_ms: int) -> None:
        epoch = getattr(event, "epoch", 0)
        attempt = self._present(*key, epoch, f"ended by {type(event).__name__}")
        claim = getattr(event, "claim", None)
        if claim is not None and attempt.claim is not None:
            self._hold(claim == attempt.claim, f"{key}: attempt {epoch} ends under another claim")
            in_time = now_ms < attempt.lease_until_ms
            self._hold(in_time, f"{key}: attempt {epoch} was accepted {now_ms - attempt.lease_until_ms} ms late")
        if isinstance(event, e.AttemptLost):
            self._lost(key, attempt, event)
        del self._open[key]

    def _lost(self, key: tuple[str, str], attempt: Open, event: e.AttemptLost) -> None:
        """When everything works, who lives renews."""
        world, claim = self._world, attempt.claim
        self._hold(claim is not None, f"{key}: attempt {event.epoch} is lost, and nobody had claimed it")
        if claim is not None and claim.process not in world.skewed and attempt.sent_ms >= world.calm_from_ms:
            died = claim.process in world.gone
            self._hold(died, f"{key}: the lease of {claim.process} ran out although nothing was wrong")

    def _present(self, stream: str, task: str, epoch: int, how: str) -> Open:
        attempt = self._open.get((stream, task))
        if attempt is None or attempt.epoch != epoch:
            now = "none" if attempt is None else attempt.epoch
            raise Violated("attempts", f"{stream}/{task}: attempt {epoch} is {how}, open is {now}")
        return attempt

    def _hold(self, holds: bool, what: str) -> None:
        if not holds:
            raise Violated("attempts", what)
