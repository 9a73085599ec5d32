"""The exported schemas and dagbok agree on what a message is: of random histories, and of commands that were broken at
random."""

from __future__ import annotations

import json
from functools import cache
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dagbok.events.run.commands import RUN_COMMANDS
from dagbok.events.run.events import EVENTS
from tests.golden import sessions
from tests.support import schemas
from tests.support.histories import random_history
from tests.support.logbuilder import LogBuilder
from tests.support.scale import scale

SEEDS, STEPS = scale(6, 60), 80
TOLERATED = {("v",), ("version",)}
"""Places where dagbok reads more than the schema lets through: an old version, which no sender should name."""
OTHERS = st.sampled_from([None, True, 0, -1, 3, 1.5, "", "x", "in", "a" * 400, [], ["x"], [1], {}, {"kind": "blocked"}])


@cache
def histories() -> tuple[LogBuilder, ...]:
    return tuple(random_history(seed, STEPS) for seed in range(SEEDS))


def test_events_of_random_histories_fit() -> None:
    kinds = set()
    for history in histories():
        for event in schemas.recorded_events(one.value for one in history.records):
            schemas.events().validate(event)
            kinds.add(event["type"])
    assert len(kinds) > len(EVENTS) * 3 // 4


def test_commands_of_random_histories_fit_when_dagbok_can_read_them() -> None:
    for history in histories():
        assert schemas.fitting_commands(history) == schemas.readable_commands(history) != []


@cache
def samples() -> dict[str, list[Any]]:
    """Commands of every kind that the histories have."""
    found: dict[str, list[Any]] = {}
    for history in (*histories(), sessions.history()):
        for value in schemas.readable_commands(history):
            command = json.loads(value)
            found.setdefault(command["type"], []).append(command)
    return found


def places(value: Any, above: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every place inside a JSON value."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for name, inner in members for place in [(*above, name), *places(inner, (*above, name))]]


def test_every_kind_of_command_is_broken_below() -> None:
    assert set(samples()) == set(RUN_COMMANDS)


@settings(max_examples=scale(400, 10_000), deadline=None)
@given(st.sampled_from(sorted(RUN_COMMANDS)), st.randoms(use_true_random=False), st.none() | st.tuples(OTHERS))
def test_a_broken_command_fits_if_and_only_if_dagbok_can_read_it(
    kind: str, random: Random, other: tuple[Any] | None
) -> None:
    """A value is taken out, or another one is put in its place."""
    command = json.loads(json.dumps(random.choice(samples()[kind])))
    place = random.choice(places(command))
    inner = command
    for step in place[:-1]:
        inner = inner[step]
    if other is None:
        del inner[place[-1]]
    else:
        inner[place[-1]] = other[0]
    fits = schemas.commands().is_valid(command)
    readable = schemas.is_readable(json.dumps(command).encode())
    assert fits == readable or (place in TOLERATED and readable)
