"""Who an attempt is for: which worker does a task, which verifier judges what it has staged."""

from __future__ import annotations

from dagbok.events.run.values import STRUCTURE, AttemptKind
from dagbok.projections.task_graph.state import RunState, TaskNode


def key_of(run: RunState, node: TaskNode, kind: AttemptKind) -> str:
    """The key of the worker or verifier that an attempt of this kind is for."""
    return judge_of(run, node) if kind == "verify" else node.spec.worker


def judge_of(run: RunState, node: TaskNode) -> str:
    """Which verifier judges what the task has staged, or would stage: its own for candidates, else
    `decomposition_judge`."""
    if node.staged is not None and node.staged.kind == "candidate":
        return node.spec.verifier
    return decomposition_judge(run, node)


def decomposition_judge(run: RunState, node: TaskNode) -> str:
    """The judge of the task's decompositions: the verifier it names for them, else its own if that judges them, else
    the one of the task that created it, so that no worker frees its children from it, and at last the built-in check of
    the structure."""
    while True:
        if node.spec.proposal_verifier is not None:
            return node.spec.proposal_verifier
        own = run.bound().verifiers.get(node.spec.verifier)
        if own is not None and "decomposition" in own.judges:
            return node.spec.verifier
        if node.created_by is None:
            return STRUCTURE
        node = run.tasks[node.created_by]
