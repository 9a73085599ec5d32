"""A list that grows: what is old is not read until somebody looks, and what is put down is what has changed."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, Field, TypeAdapter, ValidationError

from dagbok import Outcome, TaskContext
from dagbok.agents.layers import Compositor, Growing, LayerConfig, LayerNode, NoLayerDeps, PlainLayer, StateMigrator
from dagbok.agents.layers.durable import LayeredAttempt, LayeredWorker
from dagbok.agents.workers.sessions.operations import value_of
from dagbok.testing import context
from tests.support.session_store import Store

VALIDATED: list[int] = []


def counted(value: int) -> int:
    VALIDATED.append(value)
    if value < 0:
        raise ValueError("below zero")
    return value


class Numbers(BaseModel):
    numbers: Growing[Annotated[int, AfterValidator(counted)]] = Field(default_factory=Growing)
    name: str = "none"


class NumbersLayer(PlainLayer[NoLayerDeps, LayerConfig, Numbers]):
    pass


def doubled(state: dict[str, Any]) -> dict[str, Any]:
    return {**state, "numbers": [2 * number for number in state["numbers"]]}


class Later(NumbersLayer):
    """Its state is of a later version."""

    type_id = "numbers"
    state_version = 2
    state_migrators: ClassVar[Mapping[int, StateMigrator]] = {1: doubled}


class Earlier(NumbersLayer):
    type_id = "numbers"


class Hasty(NumbersLayer):
    """Changes the list as soon as it is resumed."""

    async def on_context_resume(self) -> None:
        self.runtime_state.numbers[1] = 100


def plan(kind: type[NumbersLayer] = NumbersLayer) -> Compositor:
    return Compositor([LayerNode("numbers", kind)])


def numbers_of(value: Any) -> Any:
    return value["layers"]["numbers"]["state"]["numbers"]


Change = Callable[[Numbers], object]


def appends(*numbers: int) -> Change:
    return lambda state: state.numbers.extend(numbers)


async def attempt(task: TaskContext, *changes: Change, kind: type[NumbersLayer] = NumbersLayer) -> Numbers:
    """Makes the changes, each in a turn of its own. Returns the state of the layer."""

    async def loop(attempt: LayeredAttempt) -> Outcome:
        state = attempt.run.get_layer("numbers", kind).runtime_state
        found.append(state)
        for change in changes:
            change(state)
            await attempt.put_down()
        return Outcome.candidate(0)

    found: list[Numbers] = []
    await LayeredWorker(plan(kind), loop).work(task)
    return found[0]


def task_of(store: Store) -> TaskContext:
    """The task in a process that knows nothing but what was put down."""
    task = context()
    task.open_session = store.session
    return task


async def test_defect_21_going_on_with_five_thousand_validates_what_is_appended_and_nothing_else() -> None:
    store = Store()
    await attempt(task_of(store), appends(*range(3)), appends(*range(3, 5_000)))
    later = task_of(store)
    VALIDATED.clear()
    state = await attempt(later, appends(5_000, 5_001))
    assert VALIDATED == [5_000, 5_001]
    assert state.numbers.unread == 5_000
    assert numbers_of(later.session.load()) == list(range(5_002))


async def test_what_is_looked_at_is_validated_once() -> None:
    store = Store()
    await attempt(task_of(store), appends(0), appends(1, 2, 3, 4))
    later, seen = task_of(store), list[object]()
    VALIDATED.clear()

    def looks(state: Numbers) -> None:
        seen.extend([state.numbers[-1], state.numbers[1:3], state.numbers[2]])
        seen.append(list(state.numbers))

    await attempt(later, looks)
    assert seen == [4, [1, 2], 2, [0, 1, 2, 3, 4]]
    assert VALIDATED == [4, 1, 2, 0, 3]


async def test_what_cannot_be_read_is_told_by_who_looks_at_it() -> None:
    store = Store()
    await attempt(task_of(store), appends(0), appends(1))
    later = task_of(store)
    assert later.session.load() is not None
    later.session._value["layers"]["numbers"]["state"]["numbers"][0] = msgspec.Raw(b"-1")
    state = await attempt(later, appends(2))
    assert state.numbers[1:] == [1, 2]
    with pytest.raises(ValidationError, match="below zero"):
        state.numbers[0]


async def test_a_new_item_that_is_invalid_is_not_put_down_and_fails_the_leaving_of_its_layer() -> None:
    store = Store()
    await attempt(task_of(store), appends(0))
    later = task_of(store)
    with pytest.raises(ExceptionGroup) as caught:
        await attempt(later, appends(-5))
    said = [(type(each), "below zero" in str(each), each.__notes__) for each in caught.value.exceptions]
    assert said == [
        (ValidationError, True, ["The state of layer 'numbers' cannot be put down; what was put down before stays."]),
        (
            ValidationError,
            True,
            ["The state of layer 'numbers' at the end of the run is not kept; the last valid one is."],
        ),
    ]
    assert numbers_of(later.session.load()) == [0]


async def test_a_hook_that_changes_what_the_session_has_is_seen() -> None:
    store = Store()
    await attempt(task_of(store), appends(0), appends(1, 2), kind=Hasty)
    later = task_of(store)
    await attempt(later, kind=Hasty)
    assert numbers_of(later.session.load()) == [0, 100, 2]


async def test_a_state_that_is_migrated_is_whole() -> None:
    store = Store()
    await attempt(task_of(store), appends(0), appends(1, 2), kind=Earlier)
    later = task_of(store)
    await attempt(later, appends(3), kind=Later)
    assert numbers_of(later.session.load()) == [0, 2, 4, 3]
    again = task_of(store)
    assert (await attempt(again, appends(4), kind=Later)).numbers.unread == 4
    assert numbers_of(again.session.load()) == [0, 2, 4, 3, 4]


async def test_what_cannot_be_left_is_kept_with_all_that_was_there() -> None:
    """Nobody looked at it: the snapshot is made of the JSON that was put down."""

    class Spoilt(Earlier):
        async def on_context_suspend(self) -> None:
            raise OSError("cannot be left")

    store = Store()
    await attempt(task_of(store), appends(0), appends(1, 2), kind=Earlier)
    task = task_of(store)
    with pytest.raises(OSError, match="cannot be left"):
        await attempt(task, kind=Spoilt)
    assert numbers_of(task.session.load()) == [0, 1, 2]


async def test_a_change_while_a_turn_is_being_written_is_in_the_next() -> None:
    store = Store()
    await attempt(task_of(store), appends(0, 1, 2))
    task = task_of(store)
    real = task.session._put_down

    async def meanwhile(turn: int, keep: int, part: bytes) -> None:
        task.session._put_down = real
        states[0].numbers[0] = 50
        await real(turn, keep, part)

    def begins(state: Numbers) -> None:
        states.append(state)
        state.numbers.append(3)
        task.session._put_down = meanwhile

    states: list[Numbers] = []
    await attempt(task, begins)
    assert numbers_of(task.session.load()) == [50, 1, 2, 3]


CHANGES: dict[str, Change] = {
    "append": appends(7),
    "extend": appends(8, 9),
    "insert": lambda state: state.numbers.insert(1, 5),
    "first": lambda state: operator.setitem(state.numbers, slice(0, 1), [3]),
    "last": lambda state: state.numbers and operator.setitem(state.numbers, -1, 4),
    "pop": lambda state: state.numbers and state.numbers.pop(),
    "middle": lambda state: operator.delitem(state.numbers, slice(1, 3)),
    "into": lambda state: operator.setitem(state.numbers, slice(0, 0), [11, 12]),
    "between": lambda state: operator.setitem(state.numbers, slice(2, 1), [13]),
    "clear": lambda state: state.numbers.clear(),
    "replace": lambda state: setattr(state, "numbers", Growing([1, 2, *state.numbers])),
    "plain": lambda state: setattr(state, "numbers", Growing([6])),
    "name": lambda state: setattr(state, "name", state.name + "x"),
    "look": lambda state: list(state.numbers),
}


@given(st.lists(st.lists(st.sampled_from(sorted(CHANGES)), max_size=5), min_size=1, max_size=4))
async def test_a_session_is_always_the_list_as_it_is(attempts: list[list[str]]) -> None:
    store, wanted = Store(), Numbers()
    for names in attempts:
        for name in names:
            CHANGES[name](wanted)
        task = task_of(store)
        state = await attempt(task, *(CHANGES[name] for name in names))
        assert list(state.numbers) == list(wanted.numbers)
        assert numbers_of(task.session.load()) == numbers_of(value_of(store.parts)) == list(wanted.numbers)


def test_as_a_field_it_is_a_list_in_json() -> None:
    state = Numbers(numbers=Growing([1, 2]))
    assert state.model_dump() == {"numbers": [1, 2], "name": "none"}
    assert Numbers.model_validate_json(state.model_dump_json()) == state
    assert Numbers.model_validate({"numbers": [1, 2]}).numbers == [1, 2]
    assert Numbers.model_json_schema()["properties"]["numbers"]["type"] == "array"
    with pytest.raises(ValidationError, match="valid integer"):
        Numbers.model_validate({"numbers": ["one"]})
    bare: Growing[object] = TypeAdapter(Growing).validate_json("[1]")
    assert bare == [1]
    assert bare != (2,)
    assert bare != 1
    assert repr(bare) == "Growing(1 items, 0 of them unread)"
