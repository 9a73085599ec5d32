"""Why a task was skipped: what its conditions asked for, and what was there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec

from dagbok.agents.scheduler.decide.conditions import ABSENT, value_at
from dagbok.cli.reading import Reading
from dagbok.cli.text import clean, short
from dagbok.events.canonical import Json
from dagbok.events.run.event import Event
from dagbok.events.run.events import CandidateSubmitted, TasksAdded
from dagbok.events.run.values import Condition
from dagbok.projections.views.graph.rows import RunRow, TaskRow

E = TypeVar("E", bound=Event)
NAMED = 5
WIDTH = 80


def why_skipped(found: Reading, run: RunRow, task: TaskRow) -> Sequence[str]:
    """A line for each dependency of a skipped task that was skipped, and for each condition on a verified one: its
    value, or that there is no such output, which meets no condition, and is a slip more often than not."""
    if task.status != "skipped":
        return []
    lines: list[str] = []
    for edge in found.queries.edges(found.tenant, found.project, run.run, task.task):
        dependency = found.find_task(run, edge.dependency)
        if dependency.status == "skipped":
            lines.append(f"skipped: {short(edge.dependency)} was skipped")
        elif dependency.status == "verified" and edge.state == "not_taken":
            outputs = _outputs(found, run, edge.dependency)
            lines += [_compared(each, edge.dependency, outputs) for each in _conditions(found, run, task, dependency)]
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
    for event in _events(found, run, CandidateSubmitted):
        if event.task == task:
            raw = event.outputs.copy()
    outputs: Json = msgspec.json.decode(raw)
    return outputs


def _conditions(found: Reading, run: RunRow, task: TaskRow, dependency: TaskRow) -> Sequence[Condition]:
    """Those on a dependency, whose place another task may have held when they were said."""
    specs = [entry.spec for event in _events(found, run, TasksAdded) for entry in event.tasks]
    said = [condition for spec in specs if spec.id == task.task for condition in spec.when]
    return [condition for condition in said if _stands_for(found, run, condition.task) == dependency.task]


def _stands_for(found: Reading, run: RunRow, task: str) -> str:
    row = found.find_task(run, task)
    while row.superseded_by is not None:
        row = found.find_task(run, row.superseded_by)
    return row.task


def _events(found: Reading, run: RunRow, type: type[E]) -> Iterator[E]:
    after = 0
    while rows := found.queries.journal(
        found.tenant, found.project, run.run, after_seq=after, types=(type.__name__,)
    ):
        after = rows[-1].seq
        yield from (msgspec.json.decode(row.data, type=type) for row in rows)
