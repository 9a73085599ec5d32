"""Conditions on edges: what they compare, where they look, and what they must be like."""

from __future__ import annotations

import msgspec
import pytest

from dagbok.events.canonical import Json
from dagbok.events.codes import Code
from dagbok.events.run.events import (
    AttemptOpened,
    RunStarted,
    TasksAdded,
)
from dagbok.events.run.values import Comparison, Condition
from dagbok.testing import Scenario, candidate, given, run_of, start, task, when


def _done(run: Scenario, id: str, outputs: Json = None) -> Scenario:
    return run.submits(id, candidate(id, outputs=outputs)).judges(id, "pass")


def _is_taken(outputs: Json, *conditions: Condition) -> bool:
    return _done(run_of(task("a"), task("b", depends_on=("a",), when=conditions)), "a", outputs).task("b").wanted


# What a condition compares.


@pytest.mark.parametrize(
    ("op", "values", "found", "taken"),
    [
        ("in", ("yes",), "yes", True),
        ("in", ("yes",), "no", False),
        ("in", ("yes", "no", 7), "no", True),
        ("in", (None,), None, True),
        ("in", ({"a": [1, {}]},), {"a": [1, {}]}, True),
        ("in", ({"a": 1},), {"a": 1, "b": 2}, False),
        ("in", ([1, 2],), [2, 1], False),
        ("in", ("é",), "e\u0301", True),
        ("not_in", ("yes",), "no", True),
        ("not_in", ("yes", "no"), "no", False),
        ("lt", (2,), 1, True),
        ("lt", (2,), 2, False),
        ("le", (2,), 2, True),
        ("le", (2,), 2.5, False),
        ("gt", (2,), 2.5, True),
        ("gt", (2,), 2, False),
        ("ge", (2,), 2, True),
        ("ge", (2.5,), 2, False),
        ("lt", (2**63,), 2**63 - 1, True),
        ("lt", (2**53 + 1,), 2.0**53, True),
    ],
)
def test_every_comparison(op: Comparison, values: tuple[Json, ...], found: Json, taken: bool) -> None:
    assert _is_taken({"x": found}, when("a", "/x", *values, op=op)) is taken


@pytest.mark.parametrize("op", ["lt", "le", "gt", "ge"])
@pytest.mark.parametrize("found", ["1", True, False, None, [1], {"x": 1}])
def test_only_numbers_are_compared_as_numbers(op: Comparison, found: Json) -> None:
    assert not _is_taken({"x": found}, when("a", "/x", 0, op=op))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, 1.0, True),
        (0, -0.0, True),
        (1, True, False),
        (1.0, True, False),
        (0, False, False),
        (1, "1", False),
        (None, False, False),
        ("", None, False),
        ([], {}, False),
        ([1, [2]], [1.0, [2.0]], True),
        ([1], [True], False),
        ([0, [1]], [0, [True]], False),
        ({"a": {"b": 0}}, {"a": {"b": False}}, False),
        ({"a": [1]}, {"a": [1.0]}, True),
        (2**53, 2.0**53, True),
        (2**53 + 1, 2.0**53, False),
    ],
)
def test_equal_is_what_is_equal_as_json_at_every_depth(one: Json, other: Json, same: bool) -> None:
    """Numbers by their value, whatever way they are written; 1 is not true, not even inside of something."""
    for left, right in ((one, other), (other, one)):
        assert _is_taken({"x": left}, when("a", "/x", right)) is same
        assert _is_taken({"x": left}, when("a", "/x", right, op="not_in")) is not same


def test_values_as_deep_as_they_may_be_are_compared() -> None:
    deep: Json = True
    for _ in range(240):
        deep = [deep]
    assert _is_taken(deep, when("a", "", deep))
    assert not _is_taken(deep, when("a", "", _replaced(deep, 1)))


def _replaced(value: Json, innermost: Json) -> Json:
    return [_replaced(value[0], innermost)] if isinstance(value, list) else innermost


# Where a condition looks.

PLACES: Json = {"a": {"b": [10, {"c": 11}]}, "": 12, "x/y": 13, "m~n": 14, "~1": 15, "0": 16, "é": 17, "-": 18}


@pytest.mark.parametrize(
    ("pointer", "found"),
    [
        ("", PLACES),
        ("/a/b/0", 10),
        ("/a/b/1/c", 11),
        ("/", 12),
        ("/x~1y", 13),
        ("/m~0n", 14),
        ("/~01", 15),
        ("/0", 16),
        ("/é", 17),
        ("/-", 18),
    ],
)
def test_a_pointer_finds_its_value(pointer: str, found: Json) -> None:
    assert _is_taken(PLACES, when("a", pointer, found))
    assert not _is_taken(PLACES, when("a", pointer, "else"))


ABSENT = ["/b", "/a/b/2", "/a/b/-", "/a/b/-1", "/a/b/00", "/a/b/ 0", "/a/b/+0", "/a/b/x", "/a/b/0/x", "/a/b/", "/x/y"]


@pytest.mark.parametrize("pointer", [*ABSENT, "/a/b/" + "1" * 5_000, "/a/b/٠", "/a/b/²"])
@pytest.mark.parametrize("outputs", [PLACES, None, 7, "text", []])
def test_what_is_not_there_is_equal_to_nothing(pointer: str, outputs: Json) -> None:
    assert not _is_taken(outputs, when("a", pointer, None, "", 0, False))
    assert not _is_taken(outputs, when("a", pointer, 0, op="ge"))
    assert _is_taken(outputs, when("a", pointer, None, op="not_in"))


def test_what_is_not_there_is_not_null() -> None:
    """Who asks for null asks for an output that says so."""
    found: tuple[tuple[Json, bool], ...] = (({"x": None}, True), ({"y": 1}, False), ({}, False), (None, False))
    for outputs, taken in found:
        assert _is_taken(outputs, when("a", "/x", None)) is taken
        assert _is_taken(outputs, when("a", "/x", None, op="not_in")) is not taken


def test_a_task_without_control_values_has_null() -> None:
    assert _is_taken(None, when("a", "", None))
    assert not _is_taken(None, when("a", "/x", None))


def test_several_conditions_on_an_edge_hold_together() -> None:
    between = (when("a", "/n", 3, op="ge"), when("a", "/n", 5, op="lt"))
    assert [_is_taken({"n": n}, *between) for n in (2, 3, 4, 5)] == [False, True, True, False]


def test_a_condition_is_about_its_own_edge() -> None:
    """`b` waits for two tasks; what is asked of the one is not asked of the other."""
    run = run_of(task("x"), task("y"), task("b", depends_on=("x", "y"), when=(when("x", "/ok", True),)))
    one = _done(_done(run, "y", {"ok": False}), "x", {"ok": True}).then_task("b", status="ready")
    assert one.task("b").wanted


# What a condition must be like.


@pytest.mark.parametrize(
    ("condition", "named"),
    [
        (when("c", "/x", 1), "no dependency"),
        (when("b", "/x", 1), "no dependency"),
        (when("a", "x", 1), "slash"),
        (when("a", "/x"), "1 to 100"),
        (when("a", "/x", *range(101)), "1 to 100"),
        (when("a", "/x", op="lt"), "1 to 100"),
        (when("a", "/x", 1, 2, op="lt"), "one number"),
        (when("a", "/x", "1", op="ge"), "one number"),
        (when("a", "/x", True, op="le"), "one number"),
        (when("a", "/x", None, op="gt"), "one number"),
        (Condition("a", "/x", (msgspec.Raw(b"1e999"),)), "number"),
        (Condition("a", "/x", (msgspec.Raw(b'"\xff"'),)), "compare"),
    ],
)
def test_a_condition_that_cannot_be_told_is_refused(condition: Condition, named: str) -> None:
    tasks = (task("a"), task("c"), task("b", depends_on=("a",), when=(condition,)))
    given().when(start(*tasks, roots=("b",))).then_refused(Code.INVALID_SPEC, naming=named)


def test_a_task_has_a_hundred_conditions_at_most() -> None:
    def run(count: int) -> Scenario:
        conditions = tuple(when("a", f"/{place}", 1) for place in range(count))
        return given().when(start(task("a"), task("b", depends_on=("a",), when=conditions)))

    run(100).then(RunStarted, TasksAdded, AttemptOpened)
    run(101).then_refused(Code.INVALID_SPEC, naming="101 conditions")


def test_conditions_are_part_of_what_a_task_is() -> None:
    """The same condition, written otherwise, is the same; another one is another task."""

    def command(text: bytes) -> Scenario:
        condition = Condition("a", "/x", (msgspec.Raw(text),))
        return RUN.when(start(task("a"), task("b", depends_on=("a",), when=(condition,))))

    first = start(task("a"), task("b", depends_on=("a",), when=(when("a", "/x", {"k": 1, "l": 2}),)))
    RUN = given().when(first)
    command(b'{ "l": 2, "k": 1 }').then_repeated()
    command(b'{"k":1,"l":3}').then_refused(Code.CONFIG_MISMATCH)
