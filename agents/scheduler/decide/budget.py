"""Budgets of a run: what an attempt reserves, whether it may open, and what it is charged when nobody reports."""

from __future__ import annotations

from typing import NamedTuple

from dagbok.events.codes import Code
from dagbok.events.run.amounts import NOTHING, costs_more, plus
from dagbok.events.run.events import AttemptFailed, Event, TaskBlocked
from dagbok.events.run.values import ArtifactItem, Failure, Limits, Usage
from dagbok.projections.task_graph.state import Attempt, RunState, TaskNode


def reservation(node: TaskNode) -> Usage | None:
    """What a work attempt may use, if its spec says so."""
    limits = node.spec.limits
    if limits is None or not (limits.tokens or costs_more(limits.cost, NOTHING.cost)):
        return None
    return Usage(limits.tokens, limits.cost)


def may_work(run: RunState, node: TaskNode) -> bool:
    """Whether the run can afford a work attempt at the task: what is spent, what is reserved, and what it reserves stay
    within the limits. An attempt that reserves nothing needs something to be left."""
    limits = run.limits
    if run.counts.get("verifying", 0) + len(run.resting) >= limits.max_pending_verifications:
        return False
    if limits.max_tokens is None and limits.max_cost is None:
        return True
    wanted = reservation(node) or NOTHING
    used = plus(plus(run.spent, run.reserved), wanted)
    if limits.max_tokens is not None and used.tokens + (not wanted.tokens) > limits.max_tokens:
        return False
    if limits.max_cost is None:
        return True
    if costs_more(wanted.cost, NOTHING.cost):
        return not costs_more(used.cost, limits.max_cost)
    return costs_more(limits.max_cost, used.cost)


def out_of_time(run: RunState, now_ms: int) -> bool:
    """Whether the wall time of the run is over, whoever notices."""
    limit_ms = run.limits.max_wall_ms
    return limit_ms is not None and now_ms >= run.started_ms + limit_ms


class Overdrawn(NamedTuple):
    """A limit that would begin too low: what is used of it already, in words, and the least value that it may have."""

    limit: str
    said: str
    least: str


def overdrawn(run: RunState, wanted: Limits, now_ms: int) -> list[Overdrawn]:
    """The limits that the run does not have and that `wanted` sets below what is used and reserved. What a worker is
    handed is not among them: it is measured anew for each attempt."""
    used = plus(run.spent, run.reserved)
    elapsed_ms = max(0, now_ms - run.started_ms)
    kept = run.artifact_bytes
    found = (
        Overdrawn("max_tokens", _held("tokens", run.spent.tokens, run.reserved.tokens), str(used.tokens)),
        Overdrawn("max_cost", _held("cost", run.spent.cost, run.reserved.cost), used.cost),
        Overdrawn("max_wall_ms", f"the {elapsed_ms} ms since the start", str(elapsed_ms)),
        Overdrawn("max_total_artifact_bytes", f"the {kept} bytes of its artifacts", str(kept)),
    )
    return [each for each in found if _is_below(each, getattr(run.limits, each.limit), getattr(wanted, each.limit))]


def _held(what: str, spent: int | str, reserved: int | str) -> str:
    said = f"the {what} used ({spent})"
    return said if str(reserved) == "0" else f"{said} and reserved ({reserved})"


def _is_below(each: Overdrawn, now: int | str | None, wanted: int | str | None) -> bool:
    return now is None and wanted is not None and costs_more(each.least, str(wanted))


def charged(attempt: Attempt | None) -> Usage:
    """What an attempt is charged that ended without a word: all it had reserved, unless it never began."""
    if attempt is None or attempt.claim is None or attempt.reserved is None:
        return NOTHING
    return attempt.reserved


def overflow(run: RunState, node: TaskNode) -> str | None:
    """Why the worker of the task cannot be handed all that it is to know; none when it can. Nothing is ever cut."""
    limits, most_bytes = node.spec.limits, run.limits.max_context_bytes
    most_artifacts = None if limits is None else limits.context_artifacts
    if limits is not None and limits.context_bytes is not None:
        most_bytes = limits.context_bytes if most_bytes is None else min(most_bytes, limits.context_bytes)
    if most_bytes is None and most_artifacts is None:
        return None
    handed = [ref for dep in node.deps for ref in run.tasks[dep].published]
    if most_artifacts is not None and len(handed) > most_artifacts:
        return f"{len(handed)} artifacts of dependencies, at most {most_artifacts}"
    spec = node.spec
    texts = (spec.goal.encode(), bytes(spec.contract), bytes(spec.inputs), bytes(node.composition))
    size = sum(map(len, texts)) + sum(ref.size_bytes for ref in handed)
    return f"{size} bytes to hand over, at most {most_bytes}" if most_bytes is not None and size > most_bytes else None


def artifact_breach(run: RunState, artifacts: tuple[ArtifactItem, ...]) -> str | None:
    """Why the run cannot take the artifacts of a candidate; none when it can."""
    limits = run.limits
    for item in artifacts:
        if item.size_bytes > limits.max_artifact_bytes:
            most = f"at most {limits.max_artifact_bytes} (max_artifact_bytes)"
            return f"artifact {item.name!r} has {item.size_bytes} bytes, {most}"
    total = run.artifact_bytes + sum([item.size_bytes for item in artifacts])
    if limits.max_total_artifact_bytes is not None and total > limits.max_total_artifact_bytes:
        most = f"at most {limits.max_total_artifact_bytes} (max_total_artifact_bytes)"
        return f"the artifacts of the run come to {total} bytes, {most}"
    return None


def refuse_artifacts(node: TaskNode, breach: str, usage: Usage) -> list[Event]:
    """A candidate above the limits is not staged, and not tried again: a person raises the limit, or mends the task."""
    failure = Failure("terminal", Code.BUDGET_EXHAUSTED, "", breach)
    return [
        AttemptFailed(node.id, node.epoch, failure, counted=False, usage=usage),
        TaskBlocked(node.id, Code.BUDGET_EXHAUSTED, breach),
    ]
