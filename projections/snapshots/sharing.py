"""Makes a decoded state as small as a folded one: equal strings become one, and no view keeps a buffer alive."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from dagbok.events.run.values import NULL, ArtifactRef, Condition, Decompose, Spec
from dagbok.projections.task_graph.state import Attempt, RunState, Staged, TaskNode

_set = msgspec.structs.force_setattr


class Sharing:
    """What was seen while one state is loaded; the values keep each other alive afterwards.

    Frozen values are changed here before anybody else sees them, to equal ones.
    """

    def __init__(self) -> None:
        texts: dict[str, str] = {}
        self._same = texts.setdefault

    def adopt_tasks(self, nodes: Iterable[TaskNode]) -> None:
        """Decoded tasks become independent of their bytes, and equal texts in them become one."""
        for node in nodes:
            self._node(node)

    def adopt_head(self, run: RunState) -> None:
        """The same for what a run says of its tasks."""
        same = self._same
        run.roots = self._texts(run.roots)
        run.ready = [(priority, order, same(task, task)) for priority, order, task in run.ready]
        run.backoffs = [(due_ms, order, same(task, task)) for due_ms, order, task in run.backoffs]
        run.reviews = [same(task, task) for task in run.reviews]
        run.active = {same(task, task): None for task in run.active}
        run.blocked = {same(task, task): same(code, code) for task, code in run.blocked.items()}
        run.failed = {same(task, task): same(code, code) for task, code in run.failed.items()}
        run.cancelled = {same(task, task): same(code, code) for task, code in run.cancelled.items()}

    def _node(self, node: TaskNode) -> None:
        same = self._same
        self._spec(node.spec)
        if node.created_by is not None:
            node.created_by = same(node.created_by, node.created_by)
        if node.deps:
            node.deps = self._texts(node.deps)
        if node.dependents:
            node.dependents = self._texts(node.dependents)
        if node.attempt is not None:
            self._attempt(node.attempt)
        if node.staged is not None:
            self._staged(node.staged)
        for ref in node.published:
            self._ref(ref)
        node.outputs = _own(node.outputs)
        node.composition = _own(node.composition)
        for condition in node.conditions:
            self._condition(condition)

    def _spec(self, spec: Spec) -> None:
        same = self._same
        _set(spec, "id", same(spec.id, spec.id))
        _set(spec, "worker", same(spec.worker, spec.worker))
        _set(spec, "verifier", same(spec.verifier, spec.verifier))
        _set(spec, "pool", same(spec.pool, spec.pool))
        if spec.depends_on:
            _set(spec, "depends_on", self._texts(spec.depends_on))
        if spec.proposal_verifier is not None:
            _set(spec, "proposal_verifier", same(spec.proposal_verifier, spec.proposal_verifier))
        if spec.contract is not NULL:
            _set(spec, "contract", _own(spec.contract))
        if spec.inputs is not NULL:
            _set(spec, "inputs", _own(spec.inputs))
        if spec.metadata is not NULL:
            _set(spec, "metadata", _own(spec.metadata))
        for condition in spec.when:
            self._condition(condition)

    def _condition(self, condition: Condition) -> None:
        _set(condition, "task", self._same(condition.task, condition.task))
        _set(condition, "values", tuple([_own(value) for value in condition.values]))

    def _attempt(self, attempt: Attempt) -> None:
        if attempt.reply_to is not None:
            attempt.reply_to = self._same(attempt.reply_to, attempt.reply_to)
        if attempt.claim is not None:
            _set(attempt.claim, "process", self._same(attempt.claim.process, attempt.claim.process))

    def _staged(self, staged: Staged) -> None:
        for ref in staged.artifacts:
            self._ref(ref)
        _set(staged, "outputs", _own(staged.outputs))
        if staged.proposal is not None:
            self._proposal(staged.proposal)

    def _proposal(self, proposal: Decompose) -> None:
        for spec in proposal.tasks:
            self._spec(spec)
        _set(proposal, "reuse", self._texts(proposal.reuse))
        _set(proposal, "composition_contract", _own(proposal.composition_contract))

    def _ref(self, ref: ArtifactRef) -> None:
        _set(ref, "name", self._same(ref.name, ref.name))
        _set(ref, "media_type", self._same(ref.media_type, ref.media_type))

    def _texts(self, texts: tuple[str, ...]) -> tuple[str, ...]:
        same = self._same
        return tuple([same(text, text) for text in texts])


def _own(payload: msgspec.Raw) -> msgspec.Raw:
    """A decoded `Raw` is a view of all that was decoded with it; what is returned is not."""
    return NULL if payload == NULL else payload.copy()
