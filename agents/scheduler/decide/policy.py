"""Who may judge the tasks that another task brings into the graph: nobody weaker than its own policy allows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dagbok.events.codes import Code
from dagbok.events.errors import Refused
from dagbok.events.run.values import Assurance, Spec
from dagbok.projections.task_graph.state import RunState, TaskNode

STRENGTH: Final[dict[Assurance, int]] = {"executable_checks": 0, "formal": 1}
"""Of verdicts that a program comes to. A person's review is of another kind: no worker can make it lax, so it is never
too weak, and it sets no measure for programs (ADR 14)."""


def check_children(run: RunState, parent: TaskNode, specs: Iterable[Spec]) -> None:
    """The verifiers that new tasks below `parent` name. Where the parent, or who created it, lists the verifiers of its
    children, those are the only ones; else none may have a weaker assurance than the verifier of the parent or, where
    that is a person, of the nearest task above whose verifier is not.

    The verifiers are known to be pinned. Raises `Refused` (`weaker_verifier`).
    """
    listed, floor = _listed(run, parent), _floor(run, parent)
    for spec in specs:
        for key in _named(spec):
            if listed is None:
                check_strength(run, spec.id, key, floor)
            elif key not in listed:
                raise Refused(
                    Code.WEAKER_VERIFIER,
                    f"task {spec.id} names verifier {key!r}; tasks below {parent.id} may name {', '.join(listed)}",
                )


def check_strength(run: RunState, task: str, key: str, floor: str) -> None:
    """The verifier `key` gives at least the assurance of the verifier `floor`, or a person's."""
    pins = run.bound().verifiers
    got, least = pins[key].assurance, pins[floor].assurance
    if got in STRENGTH and least in STRENGTH and STRENGTH[got] < STRENGTH[least]:
        raise Refused(
            Code.WEAKER_VERIFIER,
            f"task {task} names verifier {key!r} ({got}), which is weaker than {floor!r} ({least})",
        )


def _named(spec: Spec) -> list[str]:
    """What a spec lets judge: itself, its decompositions, and what is below it."""
    keys = [spec.verifier, *(spec.child_verifiers or ())]
    return keys if spec.proposal_verifier is None else [*keys, spec.proposal_verifier]


def _floor(run: RunState, node: TaskNode) -> str:
    pins = run.bound().verifiers
    while pins[node.spec.verifier].assurance not in STRENGTH and node.created_by is not None:
        node = run.tasks[node.created_by]
    return node.spec.verifier


def _listed(run: RunState, node: TaskNode) -> tuple[str, ...] | None:
    while node.spec.child_verifiers is None:
        if node.created_by is None:
            return None
        node = run.tasks[node.created_by]
    return node.spec.child_verifiers
