"""Edges with a condition: which of them are taken, told by the control values of the task they lead to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from operator import ge, gt, le, lt
from typing import Final, TypeGuard

import msgspec

from dagbok.events.canonical import Json
from dagbok.events.codes import Code
from dagbok.events.errors import Refused
from dagbok.events.run.values import Condition, Spec, SpecEntry
from dagbok.projections.task_graph.state import RunState, TaskNode

MAX_CONDITIONS = 100
MAX_VALUES = 100
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
"""A place in an array, as RFC 6901 has it; no array is longer."""


class Absent:
    """What stands at a place that the outputs do not have: equal to nothing."""


ABSENT = Absent()


def not_taken(run: RunState, node: TaskNode, outputs: msgspec.Raw) -> tuple[str, ...]:
    """The dependents whose edge to `node` is not taken when it is verified with these control values."""
    conditional = [id for id in node.dependents if run.tasks[id].conditions]
    if not conditional:
        return ()
    value = msgspec.json.decode(outputs)
    return tuple([id for id in conditional if not _is_taken(run.tasks[id].conditions, node.id, value)])


def with_settled_edges(run: RunState, entry: SpecEntry) -> SpecEntry:
    """A new task with what its conditions make of dependencies that are verified already."""
    spec = entry.spec
    if not spec.when:
        return entry
    verified = [run.tasks[dep] for dep in spec.depends_on if dep in run.tasks and run.tasks[dep].status == "verified"]
    untaken = [node.id for node in verified if not _is_taken(spec.when, node.id, msgspec.json.decode(node.outputs))]
    return msgspec.structs.replace(entry, not_taken=tuple(untaken)) if untaken else entry


def check_conditions(spec: Spec) -> None:
    """Each is about a dependency of the task, and compares with something that can be compared."""
    if len(spec.when) > MAX_CONDITIONS:
        raise Refused(Code.INVALID_SPEC, f"task {spec.id} has {len(spec.when)} conditions, at most {MAX_CONDITIONS}")
    for condition in spec.when:
        problem = _problem(spec, condition)
        if problem:
            raise Refused(Code.INVALID_SPEC, f"task {spec.id}, condition on {condition.task!r}: {problem}")


def value_at(value: Json, pointer: str) -> Json | Absent:
    """What stands at a JSON Pointer (RFC 6901) in a value."""
    for token in pointer.split("/")[1:]:
        token = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and token in value:
            value = value[token]
        elif isinstance(value, list) and _INDEX.fullmatch(token) and int(token) < len(value):
            value = value[int(token)]
        else:
            return ABSENT
    return value


def _is_taken(conditions: Iterable[Condition], dependency: str, outputs: Json) -> bool:
    return all(_holds(each, outputs) for each in conditions if each.task == dependency)


def _holds(condition: Condition, outputs: Json) -> bool:
    found = value_at(outputs, condition.output)
    wanted: Sequence[Json] = [msgspec.json.decode(value) for value in condition.values]
    if condition.op in ("in", "not_in"):
        return any(_same(found, value) for value in wanted) == (condition.op == "in")
    limit = wanted[0]
    return _is_number(found) and _is_number(limit) and _COMPARE[condition.op](found, limit)


_COMPARE: Final[dict[str, Callable[[float, float], bool]]] = {"lt": lt, "le": le, "gt": gt, "ge": ge}


def _same(found: Json | Absent, value: Json) -> bool:
    """Equal as JSON at every depth: 1 and 1.0 are, 1 and true are not."""
    pairs: list[tuple[Json | Absent, Json]] = [(found, value)]
    while pairs:
        one, other = pairs.pop()
        if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
            pairs += zip(one, other, strict=True)
        elif isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
            pairs += [(one[name], other[name]) for name in one]
        elif one != other or isinstance(one, bool) != isinstance(other, bool):
            return False
    return True


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _problem(spec: Spec, condition: Condition) -> str | None:
    if condition.task not in spec.depends_on:
        return "it is no dependency of the task"
    if condition.output and not condition.output.startswith("/"):
        return f"{condition.output[:140]!r} is no JSON Pointer: it begins with a slash"
    if not 0 < len(condition.values) <= MAX_VALUES:
        return f"it compares with 1 to {MAX_VALUES} values"
    if condition.op in ("in", "not_in"):
        return None
    is_one = len(condition.values) == 1 and _is_number(msgspec.json.decode(condition.values[0]))
    return None if is_one else f"{condition.op} compares with one number"
