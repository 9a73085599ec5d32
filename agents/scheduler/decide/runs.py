"""Decides what clients ask of a run as a whole: start, pause, resume, cancel, and the answer to a block."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from dagbok.agents.scheduler.decide.amendments import check_limits, check_pinned
from dagbok.agents.scheduler.decide.branch import reopen
from dagbok.agents.scheduler.decide.cause import By, Repeated
from dagbok.agents.scheduler.decide.graph_rules import check_acyclic
from dagbok.agents.scheduler.decide.guards import known_task, open_run
from dagbok.agents.scheduler.decide.proceed import close_active, proceed
from dagbok.agents.scheduler.decide.specs import admit, check_verifiers
from dagbok.events.canonical import sha256_hex
from dagbok.events.codes import Code
from dagbok.events.errors import Refused
from dagbok.events.near import did_you_mean
from dagbok.events.run import commands as c
from dagbok.events.run import events as e
from dagbok.events.run.values import SpecEntry
from dagbok.projections.task_graph.state import RunState


def start(run: RunState, command: c.StartRun, by: By) -> Iterator[e.Event]:
    """The run begins with its first tasks. The same start again is a repeat; another is refused, naming what
    differs."""
    entries = [admit(spec) for spec in command.tasks]
    digest = sha256_hex(msgspec.json.encode((entries, command.roots, command.pinned), order="deterministic"))
    graph_digest = sha256_hex(msgspec.json.encode((entries, command.roots)))
    if run.exists:
        if run.start_digest == digest or (run.graph_digest == graph_digest and run.bound() == command.pinned):
            raise Repeated(run.started_offset)
        raise Refused(Code.CONFIG_MISMATCH, f"run {run.run} exists with other {', '.join(_differences(run, command))}")
    _check_start(command, entries)
    yield e.RunStarted(
        pinned=command.pinned,
        limits=command.limits,
        roots=command.roots,
        context=command.context,
        context_hash=sha256_hex(msgspec.json.encode(command.context)),
        start_digest=digest,
        graph_digest=graph_digest,
    )
    yield e.TasksAdded(tuple(entries), graph_revision=1)
    yield from proceed(run, by.now_ms)


def pause(run: RunState, command: c.PauseRun, by: By) -> Iterator[e.Event]:
    """From running or blocked."""
    open_run(run)
    if run.status == "paused":
        raise Refused(Code.VERSION_CONFLICT, f"run {run.run} is paused already")
    yield e.RunPaused(command.reason)


def resume(run: RunState, command: c.ResumeRun, by: By) -> Iterator[e.Event]:
    """From paused only: a blocked run goes on by resolving its tasks."""
    open_run(run)
    if run.status != "paused":
        raise Refused(Code.VERSION_CONFLICT, f"run {run.run} is {run.status}, not paused")
    yield e.RunResumed(command.reason)
    yield from proceed(run, by.now_ms)


def cancel(run: RunState, command: c.CancelRun, by: By) -> Iterator[e.Event]:
    """Every attempt is closed and every open task cancelled, in one commit: nothing can start after it."""
    open_run(run)
    yield from close_active(run, "run_cancelled")
    yield e.RunCancelled(command.reason)


def resolve(run: RunState, command: c.ResolveBlock, by: By) -> Iterator[e.Event]:
    """A person did what the task waited for."""
    open_run(run)
    node = known_task(run, command.task)
    if node.status != "blocked":
        raise Refused(Code.VERSION_CONFLICT, f"task {node.id} is {node.status}, not blocked")
    yield e.TaskUnblocked(node.id, command.note)
    yield from reopen(run, f"task {node.id} is resolved")
    yield from proceed(run, by.now_ms)


def _check_start(command: c.StartRun, entries: list[SpecEntry]) -> None:
    pinned = command.pinned
    check_limits(command.limits)
    check_pinned(pinned)
    tasks = {entry.spec.id: entry.spec.depends_on for entry in entries}
    if tasks:
        check_acyclic(tasks)
    if not tasks or not command.roots:
        raise Refused(Code.INVALID_SPEC, "a run has at least one task and one root")
    if len(tasks) < len(entries):
        raise Refused(Code.IDEMPOTENCY_CONFLICT, "two tasks have the same id")
    if len(set(command.roots)) < len(command.roots):
        raise Refused(Code.INVALID_SPEC, "a root is named twice")
    for id in (*command.roots, *(dep for deps in tasks.values() for dep in deps)):
        if id not in tasks:
            raise Refused(Code.UNKNOWN_DEPENDENCY, f"there is no task {id!r}{did_you_mean(id, tasks)}")
    edges = sum(len(deps) for deps in tasks.values())
    if len(tasks) > command.limits.max_tasks or edges > command.limits.max_edges:
        raise Refused(Code.BUDGET_EXHAUSTED, f"{len(tasks)} tasks and {edges} edges are above the limits of the run")
    check_verifiers(pinned, (entry.spec for entry in entries))


def _differences(run: RunState, command: c.StartRun) -> list[str]:
    bound, wanted = run.bound(), command.pinned
    fields = [
        f"pinned.{name}"
        for name in type(bound).__struct_fields__
        if name != "verifiers" and getattr(bound, name) != getattr(wanted, name)
    ]
    keys = sorted({*bound.verifiers, *wanted.verifiers})
    fields += [f"pinned.verifiers.{key}" for key in keys if bound.verifiers.get(key) != wanted.verifiers.get(key)]
    if command.roots != run.roots:
        fields.append("roots")
    return fields or ["tasks"]
