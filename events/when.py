"""`When`: a dependency that counts only if its control values say so."""

from __future__ import annotations

from typing import Any, Final, cast

import msgspec
from pydantic import model_validator

from dagbok.events.canonical import canonical
from dagbok.events.codes import Code
from dagbok.events.run.values import Comparison, Condition
from dagbok.events.written import TITLE, JsonValue, TaskId, Written

OPERATORS: Final[dict[str, Comparison]] = {
    "equals": "in",
    "one_of": "in",
    "differs": "not_in",
    "none_of": "not_in",
    "below": "lt",
    "at_most": "le",
    "above": "gt",
    "at_least": "ge",
}


_NOT_GIVEN: Final[str] = cast("str", object())
"""A condition that is read from data may lack anything: that is told like any other mistake in it."""


class When(Written, title=TITLE + "When"):
    """A dependency with a condition, to stand in `TaskSpec.depends_on`: `When("review", "decision", equals="approve")`.

    The edge is taken if, once `task` is verified, its control value `output` (of the `outputs` of its candidate)
    compares as asked. `output` is a name at the top of them, or a JSON Pointer (`/review/score`; the empty text: all
    of them). Exactly one comparison: `equals` or `differs` (any JSON value), `one_of` or `none_of` (a list of them),
    `below`, `at_most`, `above` or `at_least` (a number). A value that is not there equals nothing and compares with
    nothing.

    A task whose edges are all settled and none taken is skipped, and so are those that only wait for it; a task with
    one edge taken runs. So a task that is to run only if a condition holds has no other edge, or says
    `join="all"`: then it is skipped unless all its edges are taken. Several conditions on one dependency hold together.
    """

    task: TaskId
    output: str
    equals: JsonValue = None
    differs: JsonValue = None
    one_of: tuple[JsonValue, ...] = ()
    none_of: tuple[JsonValue, ...] = ()
    below: float | int | None = None
    at_most: float | int | None = None
    above: float | int | None = None
    at_least: float | int | None = None

    def __init__(self, task: str = _NOT_GIVEN, output: str = _NOT_GIVEN, /, **named: Any) -> None:
        """See the class: the comparisons are named. Raises pydantic's ValidationError, also for what is missing."""
        given = {name: value for name, value in (("task", task), ("output", output)) if value is not _NOT_GIVEN}
        if twice := named.keys() & given.keys():
            raise TypeError(f"{', '.join(sorted(twice))} is given twice")
        super().__init__(**named, **given)

    @model_validator(mode="after")
    def _compares_once(self) -> When:
        named = self._named()
        if len(named) != 1:
            raise ValueError(f"name one comparison of {', '.join(OPERATORS)}, not {len(named)}")
        for value in self._values(named[0]):
            canonical(value, "a value to compare with", Code.INVALID_SPEC)
        return self

    @property
    def condition(self) -> Condition:
        """As the log keeps it."""
        name = self._named()[0]
        pointer = self.output
        if pointer and not pointer.startswith("/"):
            pointer = "/" + pointer.replace("~", "~0").replace("/", "~1")
        values = tuple([msgspec.Raw(canonical(value)) for value in self._values(name)])
        return Condition(self.task, pointer, values, OPERATORS[name])

    def _named(self) -> list[str]:
        return [name for name in OPERATORS if name in self.model_fields_set]

    def _values(self, name: str) -> tuple[JsonValue, ...]:
        value = getattr(self, name)
        return tuple(value) if name in ("one_of", "none_of") else (value,)


def written_as(condition: Condition) -> When:
    """The condition as a person would write it."""
    values = [msgspec.json.decode(value) for value in condition.values]
    if condition.op in ("in", "not_in"):
        names = ("equals", "one_of") if condition.op == "in" else ("differs", "none_of")
        one = len(values) == 1
        return When(condition.task, condition.output, **{names[0 if one else 1]: values[0] if one else values})
    name = next(name for name, op in OPERATORS.items() if op == condition.op)
    return When(condition.task, condition.output, **{name: values[0]})
