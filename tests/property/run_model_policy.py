"""The model's word on who may judge what a task brings into the graph."""

from __future__ import annotations

from tests.property.run_model import Model
from tests.property.run_model_task import Task

STRENGTH = ("executable_checks", "formal")


def judges_below(run: Model, parent: Task) -> set[str]:
    """The verifiers that new tasks below a task may name: those of the nearest list above them; without a list those
    that are not weaker than the parent's own or, if that is a person, than that of the next task above."""
    above: Task | None = parent
    while above is not None and above.spec.child_verifiers is None:
        above = None if above.parent is None else run.tasks[above.parent]
    if above is not None:
        return set(above.spec.child_verifiers or ())
    if run.pinned.verifiers[parent.spec.verifier].assurance == "human_review" and parent.parent is not None:
        return judges_below(run, run.tasks[parent.parent])
    return {key for key in run.pinned.verifiers if not is_weaker(run, key, parent.spec.verifier)}


def is_weaker(run: Model, key: str, floor: str) -> bool:
    """The verifier `key` gives less than `floor`; a person neither gives less nor asks for more."""
    pins = run.pinned.verifiers
    if "human_review" in (pins[key].assurance, pins[floor].assurance):
        return False
    return STRENGTH.index(pins[key].assurance) < STRENGTH.index(pins[floor].assurance)
