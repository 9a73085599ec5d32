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
