"""Events about a run as a whole."""

from __future__ import annotations

from dagbok.events.run.event import Event
from dagbok.events.run.values import Limits, Pinned, SecurityContext


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
