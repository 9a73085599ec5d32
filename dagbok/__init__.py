"""dagbok: verified, dynamic task graphs of many agents, kept in a log.

A task is done when a verifier says so. Everything that happened is in the log; recovery is a replay.

The names below are imported when they are first asked for: a command that only reads does not wait for what runs tasks.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dagbok.agents.workers.context import Candidate, TaskContext
    from dagbok.agents.workers.definitions import Registry, Verifier, Worker, verifier, worker
    from dagbok.agents.workers.retry import Retry
    from dagbok.agents.workers.terminal import Terminal
    from dagbok.agents.workers.views import Artifacts, ArtifactView
    from dagbok.client import Dagbok
    from dagbok.events.budgets import Limits
    from dagbok.events.codes import Code
    from dagbok.events.errors import DagbokError, Refused
    from dagbok.events.specs import Artifact, Outcome, SessionFork, TaskLimits, TaskSpec, Usage, Verdict
    from dagbok.events.when import When
    from dagbok.results import RunResult
    from dagbok.sessions import SessionView

_HOMES = {
    "dagbok.agents.workers.context": ("Candidate", "TaskContext"),
    "dagbok.agents.workers.definitions": ("Registry", "Verifier", "Worker", "verifier", "worker"),
    "dagbok.agents.workers.retry": ("Retry",),
    "dagbok.agents.workers.terminal": ("Terminal",),
    "dagbok.agents.workers.views": ("Artifacts", "ArtifactView"),
    "dagbok.client": ("Dagbok",),
    "dagbok.events.budgets": ("Limits",),
    "dagbok.events.codes": ("Code",),
    "dagbok.events.errors": ("DagbokError", "Refused"),
    "dagbok.events.specs": ("Artifact", "Outcome", "SessionFork", "TaskLimits", "TaskSpec", "Usage", "Verdict"),
    "dagbok.events.when": ("When",),
    "dagbok.results": ("RunResult",),
    "dagbok.agents.workers.sessions.session": ("TaskSession",),
    "dagbok.sessions": ("SessionView",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Artifact",
    "ArtifactView",
    "Artifacts",
    "Candidate",
    "Code",
    "Dagbok",
    "DagbokError",
    "Limits",
    "Outcome",
    "Refused",
    "Registry",
    "Retry",
    "RunResult",
    "SessionFork",
    "SessionView",
    "TaskContext",
    "TaskLimits",
    "TaskSession",
    "TaskSpec",
    "Terminal",
    "Usage",
    "Verdict",
    "Verifier",
    "When",
    "Worker",
    "verifier",
    "worker",
]


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
