"""The model's word on proposals that the graph has overtaken: whether a rule is broken because the graph changed since
the proposal was made, or would have been broken all the same."""

from __future__ import annotations

from dagbok.events.run.events import DecompositionRefused
from dagbok.events.run.values import Decompose
from tests.property.run_model import Model
from tests.property.run_model_rules import has_circle
from tests.property.run_model_task import Task

OF_THE_GRAPH = ("version_conflict", "unknown_dependency", "idempotency_conflict", "cycle")


def check_spent(run: Model, task: Task, proposal: Decompose, event: DecompositionRefused) -> None:
    """It costs nothing if and only if the graph changed and that may be why."""
    own, excused = _is_own_fault(run, task, proposal, event.code), _is_of_the_graph(run, task, proposal, event.code)
    assert own or excused
    if run.changes == task.made:
        assert event.spent, "the graph has not changed"
    else:
        assert own if event.spent else excused


def _is_own_fault(run: Model, task: Task, proposal: Decompose, code: str) -> bool:
    ids = [spec.id for spec in proposal.tasks]
    named = _named(proposal)
    if code == "cycle":
        return task.spec.id in named or has_circle({spec.id: list(spec.depends_on) for spec in proposal.tasks})
    if code == "unknown_dependency":
        return not named <= run.tasks.keys()
    if code == "idempotency_conflict":
        return len(set(ids)) < len(ids)
    return code != "version_conflict"


def _is_of_the_graph(run: Model, task: Task, proposal: Decompose, code: str) -> bool:
    if code == "unknown_dependency":
        known = [run.tasks[id] for id in _named(proposal) if id in run.tasks]
        return any(other.told in ("cancelled", "superseded") for other in known)
    if code == "idempotency_conflict":
        return not run.tasks.keys().isdisjoint(spec.id for spec in proposal.tasks)
    return code in OF_THE_GRAPH and not _is_own_fault(run, task, proposal, code)


def _named(proposal: Decompose) -> set[str]:
    """The tasks that it names and does not bring."""
    new = {spec.id for spec in proposal.tasks}
    return {dep for spec in proposal.tasks for dep in spec.depends_on if dep not in new}.union(proposal.reuse)
