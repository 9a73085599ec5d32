"""Events about a run as a whole."""

from __future__ import annotations

from dagbok.events.run.event import Event
from dagbok.events.run.values import Limits, Pinned, SecurityContext


class RunStarted(Event, frozen=True):
    """The run exists. `start_digest` names tasks, roots and pinned values: the same start again is a repeat.
    `graph_digest` names tasks and roots alone, since pinned values may be amended."""

    pinned: Pinned
    limits: Limits
    roots: tuple[str, ...]
    context: SecurityContext
    context_hash: str
    start_digest: str
    graph_digest: str = ""


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
    """Final. Every root is verified or skipped."""


class RunFailed(Event, frozen=True):
    """A task failed, or was cancelled, and nothing can go on. `tasks`: the first of them (at most 100)."""

    code: str
    tasks: tuple[str, ...]


class RunBlocked(Event, frozen=True):
    """Nothing can go on before a person resolves `tasks` (at most 100 are named), or, when the code is
    `budget_exhausted`, raises a limit of the run."""

    code: str
    tasks: tuple[str, ...]


class RunReopened(Event, frozen=True):
    """A blocked or failed run goes on."""

    reason: str = ""


class LimitsSet(Event, frozen=True):
    """The limits from now on, and those before."""

    limits: Limits
    before: Limits


class RunAmended(Event, frozen=True):
    """What the run is bound to from now on, and what it was bound to before."""

    pinned: Pinned
    before: Pinned
    reason: str = ""
