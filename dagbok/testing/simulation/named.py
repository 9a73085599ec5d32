"""That every worker and verifier which tasks name is among the definitions, said before anything is simulated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dagbok.agents.workers.definitions import Registry, Verifier, Worker
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput
from dagbok.events.near import did_you_mean
from dagbok.events.specs import TaskSpec
from dagbok.projections.task_graph.state import RunState
from dagbok.results import unserved_keys


def check_named(tasks: Sequence[TaskSpec], registry: Registry) -> None:
    """Raises `InvalidInput`: `usage` for a worker that is not there, `verifier_unavailable` for a verifier. In a
    simulation there is no other process that could have it."""
    for task in tasks:
        _check(task, "worker", [task.worker], registry.workers, Code.USAGE)
        verifiers = [task.verifier, *([task.proposal_verifier] if task.proposal_verifier else [])]
        verifiers += task.child_verifiers or ()
        _check(task, "verifier", verifiers, registry.verifiers, Code.VERIFIER_UNAVAILABLE)


def _check(
    task: TaskSpec, kind: str, keys: Iterable[str], known: Mapping[str, Worker] | Mapping[str, Verifier], code: Code
) -> None:
    for key in keys:
        if key in known:
            continue
        hint = did_you_mean(key, known)
        given = ", ".join(sorted(known)) or "none"
        named = f"task {task.id!r}" if task.id else f"the task with the goal {task.goal[:60]!r}"
        raise InvalidInput(
            f"{named} names the {kind} {key!r}, which simulate was not given{hint}",
            code=code,
            advice=f"pass the {kind} itself, or the module that has it, behind the tasks; {kind}s given: {given}",
        )


def not_given(runs: Iterable[RunState]) -> str:
    """What open attempts wait for for ever, as the beginning of a sentence; empty when that is nothing: tasks that were
    made on the way name their workers when nobody can check them any more."""
    keys = sorted({str(key) for run in runs for key in unserved_keys(run)})
    return f"no process has {', '.join(keys)}: pass what the tasks name to simulate; " if keys else ""
