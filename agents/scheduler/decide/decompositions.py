"""The rules of the graph that every decomposition is held to, whoever judges it: the `structure` check.

The order of the checks is that of LightDAG, except that sizes are compared before anything is walked. The cost is that
of the proposal and of the tasks that wait for its parent, never of the whole run.
"""

from __future__ import annotations

from collections.abc import Iterator

from dagbok.agents.scheduler.decide.cause import By
from dagbok.agents.scheduler.decide.conditions import with_settled_edges
from dagbok.agents.scheduler.decide.graph_rules import (
    Outdated,
    check_acyclic,
    check_dependencies,
    check_no_circle,
    check_revision,
    check_size,
    check_usable,
)
from dagbok.agents.scheduler.decide.payload import readable
from dagbok.agents.scheduler.decide.policy import check_children
from dagbok.agents.scheduler.decide.proceed import proceed
from dagbok.agents.scheduler.decide.retry import backoff_ms
from dagbok.agents.scheduler.decide.specs import admit, check_verifiers
from dagbok.events.codes import Code
from dagbok.events.errors import Refused
from dagbok.events.run.events import (
    DecompositionAccepted,
    DecompositionRefused,
    Event,
    TaskBackedOff,
    TaskBlocked,
    TasksAdded,
)
from dagbok.events.run.values import NULL, STRUCTURE, Claim, Decompose, SpecEntry, Usage
from dagbok.projections.task_graph.state import RunState, TaskNode


def check_proposal(run: RunState, parent: TaskNode, proposal: Decompose) -> list[SpecEntry]:
    """The new tasks as they would enter the graph. Raises `Refused` with the rule that is broken."""
    check_revision(run, proposal.expected_graph_revision)
    _check_budgets(run, parent, proposal)
    entries = [admit(spec, parent.id) for spec in proposal.tasks]
    _check_ids(run, entries, proposal)
    new = {entry.spec.id for entry in entries}
    for entry in entries:
        check_dependencies(run, entry.spec, new)
    specs = [entry.spec for entry in entries]
    check_verifiers(run.bound(), specs)
    check_children(run, parent, specs)
    _check_circles(run, parent, entries, proposal)
    return [with_settled_edges(run, entry) for entry in entries]


def accept(
    run: RunState,
    parent: TaskNode,
    proposal: Decompose,
    entries: list[SpecEntry],
    *,
    claim: Claim,
    judge: str,
    digest: str,
    usage: Usage,
    by: By,
) -> Iterator[Event]:
    """The parent waits for its children, and they enter the graph, in one commit."""
    told = judge != STRUCTURE
    revision = run.graph_revision + 1
    yield DecompositionAccepted(
        task=parent.id,
        epoch=parent.epoch,
        claim=claim,
        digest=digest,
        judge=judge,
        new=tuple(entry.spec.id for entry in entries),
        reused=tuple(dict.fromkeys(proposal.reuse)),
        graph_revision=revision,
        rationale="" if told else proposal.rationale,
        composition_contract=NULL if told else proposal.composition_contract,
        usage=usage,
    )
    if entries:
        yield TasksAdded(tuple(entries), revision)
    yield from proceed(run, by.now_ms)


def refuse(
    run: RunState,
    parent: TaskNode,
    proposal: Decompose,
    error: Refused,
    *,
    claim: Claim,
    digest: str,
    usage: Usage,
    by: By,
    made: int,
) -> Iterator[Event]:
    """`made`: the offset of the commit that the proposal was made on. If the graph has changed since then and that may
    be why a rule is broken, it costs nothing: the task runs again on the present graph, at once the first time. There
    is an end to it, for each such attempt takes another change of the graph. Any other breach is deterministic, so it
    is not retried: the task is blocked with the code until a person resolves it."""
    overtaken = isinstance(error, Outdated) and run.graph_offset > made
    yield DecompositionRefused(
        task=parent.id,
        epoch=parent.epoch,
        claim=claim,
        proposal=readable(proposal),
        digest=digest,
        code=error.code,
        reason=error.message,
        spent=not overtaken,
        graph_revision=run.graph_revision,
        usage=usage,
    )
    if not overtaken:
        yield TaskBlocked(parent.id, error.code, error.message)
    elif parent.conflicts > 1:
        # In a run that changes all the time it would be asked again and again, as fast as it answers.
        due_ms = by.now_ms + backoff_ms(run, parent, parent.conflicts - 1)
        yield TaskBackedOff(parent.id, due_ms, parent.failures)
    yield from proceed(run, by.now_ms)


def _check_budgets(run: RunState, parent: TaskNode, proposal: Decompose) -> None:
    pinned, limits = run.bound(), run.limits
    if not proposal.tasks and not proposal.reuse:
        raise Refused(Code.INVALID_OUTCOME, "a decomposition names neither new tasks nor tasks to reuse")
    if parent.decompositions >= pinned.max_decompositions:
        raise Refused(Code.BUDGET_EXHAUSTED, f"task {parent.id} was decomposed {parent.decompositions} times")
    if proposal.tasks and parent.depth >= pinned.max_depth:
        raise Refused(Code.BUDGET_EXHAUSTED, f"task {parent.id} is at depth {parent.depth} of {pinned.max_depth}")
    if len(proposal.tasks) > limits.max_children:
        raise Refused(Code.BUDGET_EXHAUSTED, f"{len(proposal.tasks)} children, at most {limits.max_children}")
    check_size(run, tasks=len(proposal.tasks), edges=_new_edges(parent, proposal))


def _new_edges(parent: TaskNode, proposal: Decompose) -> int:
    reused = set(proposal.reuse).difference(parent.deps)
    return len(proposal.tasks) + len(reused) + sum(len(set(spec.depends_on)) for spec in proposal.tasks)


def _check_ids(run: RunState, entries: list[SpecEntry], proposal: Decompose) -> None:
    seen: set[str] = set()
    for entry in entries:
        if entry.spec.id in seen:
            raise Refused(Code.IDEMPOTENCY_CONFLICT, f"two new tasks have the id {entry.spec.id}")
        if entry.spec.id in run.tasks:
            raise Outdated(Code.IDEMPOTENCY_CONFLICT, f"task id {entry.spec.id} is taken")
        seen.add(entry.spec.id)
    for id in proposal.reuse:
        check_usable(run, id, f"the decomposition reuses task {id!r}")


def _check_circles(run: RunState, parent: TaskNode, entries: list[SpecEntry], proposal: Decompose) -> None:
    """The only edges that leave an existing task leave the parent. So a circle is among the new tasks, or it leads
    from the parent through an existing task that waits for the parent."""
    edges = {entry.spec.id: entry.spec.depends_on for entry in entries}
    check_acyclic(edges)
    outside = {dep for deps in edges.values() for dep in deps if dep not in edges}
    check_no_circle(run, parent, outside.union(proposal.reuse))
