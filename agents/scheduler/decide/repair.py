"""Decides what a person does about single tasks of a run: retry, supersede, cancel."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from dagbok.agents.scheduler.decide.branch import cancel, close, doomed_below, reopen
from dagbok.agents.scheduler.decide.cause import By
from dagbok.agents.scheduler.decide.conditions import with_settled_edges
from dagbok.agents.scheduler.decide.graph_rules import check_dependencies, check_no_circle, check_revision, check_size
from dagbok.agents.scheduler.decide.guards import known_task, mendable_run, open_run
from dagbok.agents.scheduler.decide.policy import check_children, check_strength
from dagbok.agents.scheduler.decide.proceed import proceed
from dagbok.agents.scheduler.decide.specs import admit, check_verifiers
from dagbok.events.codes import Code
from dagbok.events.errors import Refused
from dagbok.events.run import commands as c
from dagbok.events.run import events as e
from dagbok.events.run.values import Spec, SpecEntry
from dagbok.projections.task_graph.state import FINAL_TASK, RunState, TaskNode


def retry(run: RunState, command: c.RetryTask, by: By) -> Iterator[e.Event]:
    """A failed task starts again, and with it a run that failed."""
    mendable_run(run)
    node = known_task(run, command.task)
    if node.status != "failed":
        raise Refused(Code.VERSION_CONFLICT, f"task {node.id} is {node.status}, not failed")
    yield e.TaskRetried(node.id, command.note)
    yield from reopen(run, f"task {node.id} is tried again")
    yield from proceed(run, by.now_ms)


def supersede(run: RunState, command: c.SupersedeTask, by: By) -> Iterator[e.Event]:
    """The replacement takes the place of the task; what was created below the old one stops, unless it is needed
    elsewhere."""
    mendable_run(run)
    node = known_task(run, command.task)
    check_revision(run, command.expected_graph_revision)
    if node.status in ("verified", "skipped", "superseded"):
        raise Refused(Code.VERSION_CONFLICT, f"task {node.id} is {node.status}: nothing can take its place")
    entry = _checked(run, node, command.replacement)
    doomed, revision = doomed_below(run, node, entry.spec.depends_on), run.graph_revision + 1
    yield from close((node, *doomed), "task_superseded")
    yield e.TaskSuperseded(node.id, entry.spec.id, revision)
    yield from cancel(doomed, "parent_superseded")
    yield e.TasksAdded((entry,), revision)
    yield from reopen(run, f"task {node.id} is superseded by {entry.spec.id}")
    yield from proceed(run, by.now_ms)


def cancel_task(run: RunState, command: c.CancelTask, by: By) -> Iterator[e.Event]:
    """The task, and what was created below it for nobody else, ends; the rest of the run goes on as far as it can."""
    open_run(run)
    node = known_task(run, command.task)
    if node.status in FINAL_TASK or node.status == "failed":
        raise Refused(Code.VERSION_CONFLICT, f"task {node.id} is {node.status} already")
    doomed = doomed_below(run, node)
    yield from close((node, *doomed), "task_cancelled")
    yield e.TaskCancelled(node.id, "requested", command.reason)
    yield from cancel(doomed, "parent_cancelled")
    # Also where it stays blocked: what is told then is what it is blocked by now.
    yield from reopen(run, f"task {node.id} is cancelled")
    yield from proceed(run, by.now_ms)


def _checked(run: RunState, old: TaskNode, replacement: Spec) -> SpecEntry:
    """The replacement as it would enter the graph. Raises `Refused` with the rule that it breaks."""
    entry = msgspec.structs.replace(admit(replacement, old.created_by), supersedes=old.id)
    spec = entry.spec
    if spec.id in run.tasks:
        raise Refused(Code.IDEMPOTENCY_CONFLICT, f"task id {spec.id} is taken")
    check_size(run, tasks=1, edges=len(spec.depends_on))
    check_dependencies(run, spec, {})
    check_no_circle(run, old, spec.depends_on)
    check_verifiers(run.bound(), (spec,))
    if old.created_by is not None:
        check_children(run, run.tasks[old.created_by], (spec,))
    else:
        check_strength(run, spec.id, spec.verifier, old.spec.verifier)
    return with_settled_edges(run, entry)
