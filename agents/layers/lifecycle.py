"""Where a layer stands, and what shall become of it when its run ends."""

from __future__ import annotations

from enum import StrEnum


class LifecycleState(StrEnum):
    """State of a layer in a run. `ACTIVE` exists inside a run only: it is never written and never read."""

    NEW = "new"
    ACTIVE = "active"
    SUSPENDED = "suspended"
    CLOSED = "closed"


class ExitIntent(StrEnum):
    """What the end of a run does with a layer; `DELETE` unless the run asks otherwise."""

    DELETE = "delete"
    SUSPEND = "suspend"


def never_active(state: LifecycleState) -> LifecycleState:
    """The state of a layer that is written or read. ValueError for `ACTIVE`."""
    if state is LifecycleState.ACTIVE:
        raise ValueError("ACTIVE is internal-only: a snapshot is taken between runs")
    return state
