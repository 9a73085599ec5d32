"""What is put down of a state is what the next attempt reads as the same state, or it is not put down."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import count
from typing import Annotated, Any

import pytest
from annotated_types import MaxLen
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    computed_field,
    field_serializer,
    field_validator,
    model_validator,
)

from dagbok import Outcome
from dagbok.agents.layers import Compositor, Growing, LayerConfig, LayerNode, NoLayerDeps, PlainLayer
from dagbok.agents.layers.durable import LayeredAttempt, LayeredWorker
from dagbok.agents.layers.kept_state import valid_state
from dagbok.testing import context
from tests.support.scale import scale


class Odd(BaseModel):
    """Aliases, computed fields, values that are written otherwise than they are."""

    model_config = ConfigDict(extra="forbid")

    asked_by: str = Field(default="", alias="askedBy")
    said_lines: Growing[str] = Field(default_factory=Growing, alias="saidLines")
    numbers: Annotated[Growing[int], PlainSerializer(lambda given: [f"{each:x}" for each in given])] = Field(
        default_factory=Growing
    )
    marked: Growing[str] = Field(default_factory=Growing)

    @computed_field
    def lines(self) -> int:
        """How many."""
        return len(self.said_lines)

    @field_validator("numbers", mode="before")
    @classmethod
    def _of_hex(cls, given: list[Any]) -> list[Any]:
        return [int(each, 16) if isinstance(each, str) else each for each in given]

    @field_serializer("marked")
    def _mark(self, given: list[str]) -> list[str]:
        return [f"<{each.strip('<>')}>" for each in given]


class OddLayer(PlainLayer[NoLayerDeps, LayerConfig, Odd]):
    config_type = LayerConfig


class Pair(BaseModel):
    low: int = 0
    high: int = 0
    names: Growing[int] = Field(default_factory=Growing)
    few: Annotated[Growing[int], MaxLen(2)] = Field(default_factory=Growing)

    @model_validator(mode="after")
    def _in_order(self) -> Pair:
        if self.low > self.high:
            raise ValueError("low above high")
        return self


class PairLayer(PlainLayer[NoLayerDeps, LayerConfig, Pair]):
    config_type = LayerConfig


def worker(layer: type[Any], loop: Any) -> LayeredWorker:
    return LayeredWorker(Compositor([LayerNode("kept", layer)]), loop)


async def test_states_of_every_form_are_resumed_as_they_were_put_down() -> None:
    async def talks(attempt: LayeredAttempt) -> Outcome:
        state = attempt.run.get_layer("kept", OddLayer).runtime_state
        for number in (10, 11, 255):
            state.asked_by = f"of {number}"
            state.said_lines.append(f"line {number}")
            state.numbers.append(number)
            state.marked.append(f"{number}")
            await attempt.put_down()
        return Outcome.candidate(0)

    async def looks(attempt: LayeredAttempt) -> Outcome:
        state = attempt.run.get_layer("kept", OddLayer).runtime_state
        return Outcome.candidate([state.asked_by, list(state.said_lines), list(state.numbers), list(state.marked)])

    first = context()
    await worker(OddLayer, talks).work(first)
    assert first.session.load()["layers"]["kept"]["state"] == {
        "askedBy": "of 255",
        "saidLines": ["line 10", "line 11", "line 255"],
        "numbers": ["a", "b", "ff"],
        "marked": ["<10>", "<11>", "<255>"],
    }
    second = context(session=first.session.load())
    outcome = await worker(OddLayer, looks).work(second)
    assert outcome.artifacts["result"].content == [
        "of 255",
        ["line 10", "line 11", "line 255"],
        [10, 11, 255],
        ["<10>", "<11>", "<255>"],
    ]
    assert second.session.load() == first.session.load()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"low": "many"}, "valid integer"),
        ({"low": 3}, "low above high"),
        ({"names": Growing([1, "two"])}, "valid integer"),
        ({"names": [1, "two"]}, "valid integer"),
        ({"few": Growing([1, 2, 3])}, "at most 2"),
    ],
)
async def test_a_state_that_nobody_could_resume_is_not_put_down_and_the_turn_before_it_stays(
    change: dict[str, Any], said: str
) -> None:
    async def loop(attempt: LayeredAttempt) -> Outcome:
        state = attempt.run.get_layer("kept", PairLayer).runtime_state
        state.high = 1
        await attempt.put_down()
        state.__dict__.update(change)
        await attempt.put_down()
        raise AssertionError

    async def looks(attempt: LayeredAttempt) -> Outcome:
        return Outcome.candidate(attempt.run.get_layer("kept", PairLayer).runtime_state.high)

    first = context()
    with pytest.raises(ExceptionGroup) as caught:
        await worker(PairLayer, loop).work(first)
    refused = caught.value.exceptions[0]
    assert isinstance(refused, ValidationError)
    assert said in str(refused)
    assert refused.__notes__ == ["The state of layer 'kept' cannot be put down; what was put down before stays."]
    assert first.session.load()["layers"]["kept"]["state"] == {"low": 0, "high": 1, "names": [], "few": []}
    assert (await worker(PairLayer, looks).work(context(session=first.session.load()))).artifacts["result"].content == 1


CHANGES = st.sampled_from(("append", "append", "extend", "shorten", "replace", "clear", "ask", "put_down", "put_down"))


@settings(max_examples=scale(100, 2_000), deadline=None)
@given(st.lists(st.lists(CHANGES, max_size=12), min_size=1, max_size=4), st.booleans())
def test_the_session_has_the_state_whatever_was_done_to_it_and_however_attempts_end(
    attempts: list[list[str]], breaks: bool
) -> None:
    """What stands in it is what the layer has, and the next attempt begins with that."""
    texts = (f"{number}" for number in count())

    def change(state: Odd, what: str) -> None:
        if what in ("append", "extend"):
            added = [next(texts) for _ in range(1 if what == "append" else 3)]
            state.said_lines += added
            state.numbers.extend(map(int, added))
        elif what == "shorten":
            del state.said_lines[-1:]
            state.marked.append(next(texts))
        elif what == "replace":
            state.said_lines = Growing([next(texts)])
            state.numbers = list(state.numbers)  # type: ignore[assignment]
        elif what == "clear":
            state.numbers.clear()
        elif what == "ask":
            state.asked_by = next(texts)

    async def one(changes: list[str], value: Any, expected: Any) -> tuple[Any, Any]:
        kept: list[Any] = []

        async def loop(attempt: LayeredAttempt) -> Outcome:
            layer = attempt.run.get_layer("kept", OddLayer)
            assert expected is None or valid_state(layer).json() == expected
            for what in changes:
                change(layer.runtime_state, what)
                if what == "put_down":
                    await attempt.put_down()
                    assert task.session.load()["layers"]["kept"]["state"] == valid_state(layer).json()
            kept.append(valid_state(layer).json())
            if breaks:
                raise ValueError
            return Outcome.candidate(0)

        task = context(session=value)
        with suppress(ValueError):
            await worker(OddLayer, loop).work(task)
        return task.session.load(), kept[0]

    async def all_of_them() -> None:
        value = expected = None
        for changes in attempts:
            value, expected = await one(changes, value, expected)
            assert value["layers"]["kept"]["state"] == expected

    asyncio.run(all_of_them())
