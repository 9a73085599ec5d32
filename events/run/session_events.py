"""Events about the session of a task: what its worker keeps from turn to turn and from attempt to attempt."""

from __future__ import annotations

from dagbok.events.run.event import Event
from dagbok.events.run.values import ArtifactItem, Claim


class SessionSuspended(Event, frozen=True):
    """The worker of a running attempt has put down its session as it is after `turn`.

    The session is now made up of its first `keep` parts as before and of `part` behind them. `digest` names it, with
    all that came before; `size_bytes`: of `part` and of the parts kept."""

    task: str
    epoch: int
    claim: Claim
    turn: int
    keep: int
    part: ArtifactItem
    digest: str
    size_bytes: int


class SessionResumed(Event, frozen=True):
    """The attempt that starts goes on with the session of the task, as it was after `turn`."""

    task: str
    epoch: int
    turn: int
    digest: str
