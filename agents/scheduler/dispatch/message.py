"""What a dispatch says, built from the confirmed state of a run."""

from __future__ import annotations

from dagbok.agents.scheduler.dispatch.payloads import RecentPayloads
from dagbok.agents.scheduler.dispatch.problems import Problems
from dagbok.events.envelope import Dispatch, Input, Problem, SessionParts
from dagbok.events.run import events as e
from dagbok.events.run.values import NULL
from dagbok.projections.task_graph.state import Attempt, RunState, TaskNode

MAX_INLINE_INPUT_BYTES = 64 * 1024


def build_dispatch(
    run: RunState,
    node: TaskNode,
    attempt: Attempt,
    key: str,
    partition: int,
    payloads: RecentPayloads,
    problems: Problems,
) -> Dispatch:
    """The dispatch of an open attempt; the same attempt always gives the same, but for which bytes come inline."""
    review = attempt.kind == "verify"
    staged = node.staged if review else None
    return Dispatch(
        kind=attempt.kind,
        tenant=run.tenant,
        project=run.project,
        run=run.run,
        task=node.id,
        epoch=attempt.epoch,
        phase=attempt.phase,
        pool=node.spec.pool,
        key=key,
        input_hash=attempt.input_hash,
        opened_at=(partition, attempt.opened_at[0]),
        spec=node.spec,
        attempt=node.failures + 1,
        context=run.context,
        graph_revision=run.graph_revision,
        inputs=_inputs(run, node, payloads),
        renamed=_renamed(node),
        composition=node.composition,
        problem=_problem(node, partition, problems),
        candidate=() if staged is None else tuple([Input(node.id, ref, payloads.get(ref)) for ref in staged.artifacts]),
        outputs=NULL if staged is None else staged.outputs,
        proposal=None if staged is None else staged.proposal,
        subject=() if staged is None else staged.subject,
        session=None if review else _session(node),
        pin=run.bound().verifiers.get(key) if review else None,
    )


def _inputs(run: RunState, node: TaskNode, payloads: RecentPayloads) -> tuple[Input, ...]:
    inputs, carried = [], 0
    for dep in node.deps:
        for ref in run.tasks[dep].published:
            inline = payloads.get(ref) if carried < MAX_INLINE_INPUT_BYTES else None
            if inline is not None:
                carried += len(inline)
            inputs.append(Input(dep, ref, inline))
    return tuple(inputs)


def _session(node: TaskNode) -> SessionParts | None:
    session = node.session
    return None if session is None else SessionParts(turn=session.turn, digest=session.digest, parts=session.parts)


def _renamed(node: TaskNode) -> dict[str, str]:
    """Edges keep the order of the spec, also when a dependency was superseded; those to children come behind."""
    named = node.spec.depends_on
    return {name: dep for name, dep in zip(named, node.deps, strict=False) if name != dep}


def _problem(node: TaskNode, partition: int, problems: Problems) -> Problem | None:
    if node.problem is None and node.note is None:
        return None
    told = problems.told(node.problem, partition)
    note = problems.told(node.note, partition)
    code = node.problem.code if node.problem else node.note.code if node.note else ""
    return Problem(
        code=code,
        failure=told.failure if isinstance(told, e.AttemptFailed) else None,
        diagnostics=told.report.diagnostics if isinstance(told, e.VerdictRecorded) else NULL,
        reason=told.reason if isinstance(told, e.TaskBlocked | e.DecompositionRefused) else "",
        note=note.note if isinstance(note, e.TaskUnblocked | e.TaskRetried) else "",
    )
