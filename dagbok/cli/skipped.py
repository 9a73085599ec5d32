"""Why a task was skipped: what its conditions asked for, and what was there."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dagbok.agents.scheduler.decide.conditions import ABSENT, value_at
from dagbok.cli.journal import events_of
from dagbok.cli.reading import Reading
from dagbok.cli.text import clean, short
from dagbok.events.canonical import Json
from dagbok.events.run.events import CandidateSubmitted, TasksAdded
from dagbok.events.run.values import Condition
from dagbok.projections.views.graph.rows import RunRow, TaskRow

NAMED = 5
WIDTH = 80


def why_skipped(found: Reading, run: RunRow, task: TaskRow) -> Sequence[str]:
    """A line for each dependency of a skipped task that was skipped, and for each condition on a verified one: its
    value, or that there is no such output, which meets no condition, and is a slip more often than not."""
    if task.status != "skipped":
        return []
    lines: list[str] = []
    conditions: Sequence[tuple[str, Condition]] | None = None
    for edge in found.queries.edges(found.tenant, found.project, run.run, task.task):
        dependency = found.find_task(run, edge.dependency)
        if dependency.status == "skipped":
            lines.append(f"skipped: {short(edge.dependency)} was skipped")
        elif dependency.status == "verified" and edge.state == "not_taken":
            conditions = conditions if conditions is not None else _conditions(found, run, task)
            outputs = _outputs(found, run, edge.dependency)
            lines += [_compared(each, name, outputs) for name, each in conditions if name == edge.dependency]
    return lines


def _compared(condition: Condition, dependency: str, outputs: Json) -> str:
    name = clean(".".join(condition.output.split("/")[1:]), WIDTH)
    value = value_at(outputs, condition.output)
    if value is not ABSENT:
        said = clean(msgspec.json.encode(value).decode(), WIDTH)
        return f"skipped: the output {name} of {short(dependency)} is {said}"
    there = ", ".join(clean(each, WIDTH) for each in list(outputs)[:NAMED]) if isinstance(outputs, dict) else ""
    said = f"its outputs: {there}" if there else "it has none: Outcome.candidate(…, outputs={…}) gives them"
    return f"skipped: {short(dependency)} has no output {name}; {said}"


def _outputs(found: Reading, run: RunRow, task: str) -> Json:
    """The control values of the candidate that was verified: the last one."""
    raw = msgspec.Raw(b"null")
    for event in events_of(found, run, CandidateSubmitted, task):
        raw = event.outputs.copy()
    outputs: Json = msgspec.json.decode(raw)
    return outputs


def _conditions(found: Reading, run: RunRow, task: TaskRow) -> Sequence[tuple[str, Condition]]:
    """Those of a task, each with the dependency that it is on now: another may have held its place when it was said."""
    added = [entry.spec for event in events_of(found, run, TasksAdded) for entry in event.tasks]
    said = [condition for spec in added if spec.id == task.task for condition in spec.when]
    return [(_stands_for(found, run, condition.task), condition) for condition in said]


def _stands_for(found: Reading, run: RunRow, task: str) -> str:
    row = found.find_task(run, task)
    while row.superseded_by is not None:
        row = found.find_task(run, row.superseded_by)
    return row.task
