"""The model's word on what is refused: for each command, every code that the documents have against it.

A command with no code against it has to be accepted; one with several may be refused with any of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal

import msgspec

from dagbok.events.run import commands as c
from dagbok.events.run.values import Decompose, Limits, Pinned, Spec
from tests.property.run_model import Model
from tests.property.run_model_amounts import total
from tests.property.run_model_attempts import of_an_attempt, renewed
from tests.property.run_model_policy import is_weaker, judges_below
from tests.property.run_model_task import Task

MENDS = (c.AmendRun, c.SetLimits, c.RetryTask, c.SupersedeTask)
"""Commands that a failed run takes as well."""


def refusals(run: Model, command: c.RunCommand, now_ms: int) -> set[str]:
    """The codes that are against the command now."""
    closed = ("succeeded", "cancelled") if isinstance(command, MENDS) else ("succeeded", "cancelled", "failed")
    found = {"run_closed"} if run.word in closed else set()
    of_the_run = _of_the_run(run, command, now_ms)
    return found.union(of_the_run, _of_a_task(run, command), _of_agents(run, command, now_ms))


def _of_the_run(run: Model, command: c.RunCommand, now_ms: int) -> Iterator[str]:
    match command:
        case c.PauseRun() if run.word == "paused":
            yield "version_conflict"
        case c.ResumeRun() if run.word != "paused":
            yield "version_conflict"
        case c.SetLimits(limits=limits, named=named):
            yield from _of_limits(run, with_named(run.limits, limits, named), now_ms)
        case c.AmendRun():
            for key in command.verifiers.keys() & run.pinned.verifiers.keys():
                if not set(run.pinned.verifiers[key].judges) <= set(command.verifiers[key].judges):
                    yield "config_mismatch"
            if amended(run.pinned, command) == run.pinned:
                yield "version_conflict"


def _of_a_task(run: Model, command: c.RunCommand) -> Iterator[str]:
    if not isinstance(command, c.ResolveBlock | c.RetryTask | c.CancelTask | c.SupersedeTask):
        return
    status = run.statuses().get(command.task, "unknown")
    if status == "unknown":
        yield "not_found"
        return
    wanted: dict[type, bool] = {
        c.ResolveBlock: status == "blocked",
        c.RetryTask: status == "failed",
        c.CancelTask: status not in ("verified", "skipped", "cancelled", "superseded", "failed"),
        c.SupersedeTask: status not in ("verified", "skipped", "superseded"),
    }
    if not wanted[type(command)]:
        yield "version_conflict"
    if isinstance(command, c.SupersedeTask):
        yield from _of_a_replacement(run, run.tasks[command.task], command)


def _of_a_replacement(run: Model, old: Task, command: c.SupersedeTask) -> Iterator[str]:
    spec = command.replacement
    if command.expected_graph_revision not in (None, run.revision):
        yield "version_conflict"
    if old.spec.id in spec.depends_on:
        yield "cycle"
    edges = {id: [spec.id if dep == old.spec.id else dep for dep in task.deps] for id, task in run.tasks.items()}
    yield from _of_new_tasks(run, (spec,), edges | {spec.id: list(spec.depends_on)}, len(set(spec.depends_on)))
    if old.parent is not None:
        yield from _of_children(run, run.tasks[old.parent], (spec,))
    elif spec.verifier in run.pinned.verifiers and is_weaker(run, spec.verifier, old.spec.verifier):
        yield "weaker_verifier"


def breaches(run: Model, parent: Task, proposal: Decompose) -> set[str]:
    """The rules of the graph that a proposal breaks."""
    return set(_breaches(run, parent, proposal))


def _breaches(run: Model, parent: Task, proposal: Decompose) -> Iterator[str]:
    specs, reused = proposal.tasks, set(proposal.reuse)
    if proposal.expected_graph_revision not in (None, run.revision):
        yield "version_conflict"
    if not specs and not reused:
        yield "invalid_outcome"
    too_deep = bool(specs) and run.depth(parent) >= run.pinned.max_depth
    too_often = parent.decompositions >= run.pinned.max_decompositions
    if too_deep or too_often or len(specs) > run.limits.max_children:
        yield "budget_exhausted"
    for id in reused:
        if id not in run.tasks or run.tasks[id].told in ("cancelled", "superseded"):
            yield "unknown_dependency"
    edges = {id: list(task.deps) for id, task in run.tasks.items()} | {spec.id: list(spec.depends_on) for spec in specs}
    edges[parent.spec.id] = [*parent.deps, *(spec.id for spec in specs), *reused]
    more = len(specs) + len(reused.difference(parent.deps)) + sum(len(set(spec.depends_on)) for spec in specs)
    yield from _of_new_tasks(run, specs, edges, more)
    yield from _of_children(run, parent, specs)


def _of_new_tasks(run: Model, specs: tuple[Spec, ...], edges: dict[str, list[str]], more: int) -> Iterator[str]:
    new, pins = [spec.id for spec in specs], run.pinned.verifiers
    if len(set(new)) < len(new) or not run.tasks.keys().isdisjoint(new):
        yield "idempotency_conflict"
    if len(run.tasks) + len(specs) > run.limits.max_tasks:
        yield "budget_exhausted"
    if sum(len(task.deps) for task in run.tasks.values()) + more > run.limits.max_edges:
        yield "budget_exhausted"
    if has_circle(edges):
        yield "cycle"
    for spec in specs:
        for dep in set(spec.depends_on).difference(new):
            if dep not in run.tasks or run.tasks[dep].told in ("cancelled", "superseded"):
                yield "unknown_dependency"
        judges = {spec.verifier: "candidate"} | {key: "" for key in spec.child_verifiers or () if key != spec.verifier}
        if any(key not in pins or (kind and kind not in pins[key].judges) for key, kind in judges.items()):
            yield "verifier_unavailable"
        other = spec.proposal_verifier
        if other is not None and (other not in pins or "decomposition" not in pins[other].judges):
            yield "verifier_unavailable"


def _of_children(run: Model, parent: Task, specs: tuple[Spec, ...]) -> Iterator[str]:
    allowed = judges_below(run, parent)
    for spec in specs:
        if not {spec.verifier, spec.proposal_verifier or spec.verifier, *(spec.child_verifiers or ())} <= allowed:
            yield "weaker_verifier"


def _of_agents(run: Model, command: c.RunCommand, now_ms: int) -> Iterator[str]:
    match command:
        case c.RenewLeases():
            if not renewed(run, command, now_ms):
                yield "lease_rejected"
        case c.ReportGone(process=process):
            claims = [task.attempt.claim for task in run.tasks.values() if task.attempt is not None]
            if not any(claim is not None and claim.process == process for claim in claims):
                yield "stale_attempt"
        case c.FireTimer():
            yield from _of_timers(run, command, now_ms)
        case (
            c.StartAttempt()
            | c.RejectAttempt()
            | c.SubmitOutcome()
            | c.SubmitVerdict()
            | c.FailAttempt()
            | c.ReleaseAttempt()
            | c.SuspendSession()
        ):
            yield from of_an_attempt(run, command, now_ms)


def _of_timers(run: Model, command: c.FireTimer, now_ms: int) -> Iterator[str]:
    if command.kind == "wall":
        if run.limits.max_wall_ms is None or run.word == "blocked":
            yield "stale_attempt"
        elif not run.is_late(now_ms):
            yield "not_due"
        elif run.word == "paused":
            yield "run_paused"
        return
    task = run.tasks.get(command.task)
    if task is None:
        yield "not_found"
    elif command.kind == "backoff":
        if task.told != "backoff" or task.epoch != command.epoch:
            yield "stale_attempt"
        elif now_ms < task.due_ms:
            yield "not_due"
        elif run.word == "paused":
            yield "run_paused"
        elif not run.goes_on(now_ms):
            yield "not_due"
    else:
        attempt = task.attempt
        if attempt is None or attempt.epoch != command.epoch or attempt.claim is None:
            yield "stale_attempt"
            return
        due_ms = attempt.lease_until_ms if command.kind == "lease" else attempt.timeout_at_ms
        if due_ms is None:
            yield "stale_attempt"
        elif now_ms < due_ms:
            yield "not_due"


def amended(pinned: Pinned, command: c.AmendRun) -> Pinned:
    """What the run is bound to afterwards."""
    named = ("failure_policy", "max_depth", "max_decompositions")
    changed = {name: value for name in named if (value := getattr(command, name)) is not None}
    return msgspec.structs.replace(pinned, verifiers={**pinned.verifiers, **command.verifiers}, **changed)


def has_circle(edges: dict[str, list[str]]) -> bool:
    """Whether some task waits for itself: take away what waits for nothing, until nothing changes."""
    left = {id: [dep for dep in deps if dep in edges] for id, deps in edges.items()}
    while free := [id for id, deps in left.items() if not any(dep in left for dep in deps)]:
        for id in free:
            del left[id]
    return bool(left)


def _of_limits(run: Model, wanted: Limits, now_ms: int) -> Iterator[str]:
    pairs: Iterable[tuple[int | str | None, int | str | None]]
    pairs = [(getattr(run.limits, name), getattr(wanted, name)) for name in Limits.__struct_fields__]
    if any(old is not None and new is not None and Decimal(new) < Decimal(old) for old, new in pairs):
        yield "config_mismatch"
    tokens, cost = total(run.spent, run.reserved())
    used: dict[str, int | Decimal] = {
        "max_tokens": tokens,
        "max_cost": cost,
        "max_wall_ms": now_ms - run.started_ms,
        "max_total_artifact_bytes": run.artifact_bytes,
    }
    for name, amount in used.items():
        begins = None if getattr(run.limits, name) is not None else getattr(wanted, name)
        if begins is not None and Decimal(begins) < amount:
            yield "budget_exhausted"


def with_named(now: Limits, wanted: Limits, names: tuple[str, ...] | None) -> Limits:
    """The limits afterwards: those that are not named stay, and those that are named as none."""
    named = [name for name in Limits.__struct_fields__ if names is None or name in names]
    changed = {name: value for name in named if (value := getattr(wanted, name)) is not None}
    return msgspec.structs.replace(now, **changed)
