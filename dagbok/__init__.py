"""dagbok: verified, dynamic task graphs of many agents, kept in a log.

A task is done when a verifier says so. Everything that happened is in the log; recovery is a replay.
"""

from dagbok.agents.workers.context import Artifacts, ArtifactView, Candidate, TaskContext
from dagbok.agents.workers.definitions import Registry, Verifier, Worker, verifier, worker
from dagbok.agents.workers.terminal import Terminal
from dagbok.client import Dagbok
from dagbok.events.codes import Code
from dagbok.events.errors import DagbokError, Refused
from dagbok.events.run.values import Limits
from dagbok.events.specs import Artifact, Outcome, TaskSpec, Usage, Verdict
from dagbok.results import RunResult

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
    "RunResult",
    "TaskContext",
    "TaskSpec",
    "Terminal",
    "Usage",
    "Verdict",
    "Verifier",
    "Worker",
    "verifier",
    "worker",
]
