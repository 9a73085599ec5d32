"""Laws of the changes of a session, and of the parts that they are written in."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from dagbok.agents.workers.sessions.difference import difference, same
from dagbok.agents.workers.sessions.growth import FACTOR, parts_to_keep
from dagbok.agents.workers.sessions.operations import (
    Add,
    apply,
    built,
    decode_part,
    encode_part,
    joined,
    value_of,
    whole,
)
from dagbok.agents.workers.sessions.unread import Path, Unread, copied, read, without_lists
from tests.support.scale import scale
from tests.support.session_store import Store

examples = settings(max_examples=scale(150, 5_000), deadline=None)

scalars = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-2, 2) | st.text("ab", max_size=2)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=4)
)


def copy(value: Any) -> Any:
    return orjson.loads(orjson.dumps(value))


@examples
@given(values, values)
def test_what_differs_makes_the_one_of_the_other(before: Any, after: Any) -> None:
    operations = list(difference(copy(before), copy(after)))
    assert same(apply(copy(before), operations), copy(after))
    assert bool(operations) != same(copy(before), copy(after))


@examples
@given(st.lists(values, min_size=1, max_size=6))
def test_operations_that_are_joined_or_written_and_read_do_the_same(turns: list[Any]) -> None:
    pairs = zip([None, *turns], turns, strict=False)
    changes = [operation for one, other in pairs for operation in difference(copy(one), copy(other))]
    wanted = copy(turns[-1])
    assert same(apply(None, joined(changes)), wanted)
    assert same(value_of([encode_part(changes)]), wanted)
    assert same(apply(None, decode_part(encode_part(changes))), wanted)


@examples
@given(st.lists(values, min_size=1, max_size=6))
def test_a_value_is_written_in_one_part_without_reading_the_lists_that_grew(turns: list[Any]) -> None:
    pairs = zip([None, *turns], turns, strict=False)
    changes = [operation for one, other in pairs for operation in difference(copy(one), copy(other))]
    unread = built([changes], unread=True)
    part = encode_part(whole(unread))
    assert same(value_of([part]), copy(turns[-1]))
    assert same(read(copied(unread)), copy(turns[-1]))
    grown = [operation.path for operation in decode_part(part) if isinstance(operation, Add)]
    assert grown == [path for path, items in lists_of(unread) if items]


def lists_of(value: Any) -> list[tuple[Path, Unread]]:
    found: list[tuple[Path, Unread]] = []
    without_lists(value, found)
    return found


@examples
@given(st.lists(st.tuples(values, st.booleans()), min_size=1, max_size=12))
def test_whatever_is_put_down_is_found_by_the_next_attempt(turns: list[tuple[Any, bool]]) -> None:
    """Also by one in the midst: `True` stands for an attempt that ends there."""

    async def live() -> None:
        store = Store()
        session = store.session()
        for value, ends in turns:
            await session.save(value)
            assert (session.turn, session.digest) == (store.turn, store.digest)
            assert same(session.load(), copy(value))
            if ends:
                session = store.session()
                assert same(session.load(), copy(value))
        assert same(value_of(store.parts), copy(turns[-1][0]))

    asyncio.run(live())


@examples
@given(st.lists(st.integers(1, 500), max_size=200))
def test_parts_are_few_and_each_outweighs_what_follows(sizes: list[int]) -> None:
    parts: list[int] = []
    for new in sizes:
        keep = parts_to_keep(parts, new)
        parts[keep:] = [sum(parts[keep:]) + new]
    assert sum(parts) == sum(sizes)
    assert all(part >= FACTOR * sum(parts[index + 1 : index + 2]) for index, part in enumerate(parts[:-1]))
    assert len(parts) <= sum(sizes).bit_length() + 1


def test_a_long_conversation_is_written_a_few_times_over_and_read_in_few_parts() -> None:
    async def talk() -> Store:
        store = Store()
        session = store.session()
        history: list[str] = []
        for number in range(500):
            history += [f"question {number}", f"answer {number}"]
            await session.save({"messages": history})
        return store

    store = asyncio.run(talk())
    size = sum(map(len, store.parts))
    assert store.written < 10 * size
    assert len(store.parts) < 12
