"""How work on a partition is tried again: what is waited for, what halts, and how long the pauses are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from dagbok.agents.kafka import retrying
from dagbok.agents.kafka.retrying import FIRST_PAUSE_S, LONGEST_PAUSE_S, Retrying
from dagbok.events.codes import Code
from dagbok.events.errors import DagbokError, LogError, LogLost, StorageFailed


class Clock:
    """Sleeps cost no time, and are noted."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.slept: list[float] = []

    async def sleep(self, delay_s: float) -> None:
        self.now_s += delay_s
        self.slept.append(delay_s)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(retrying, "monotonic", lambda: made.now_s)
    monkeypatch.setattr(asyncio, "sleep", made.sleep)
    return made


class Done(Exception):
    """The work has seen enough."""


async def tried(told: list[Callable[[Retrying], DagbokError]]) -> tuple[Retrying, list[Any]]:
    """Work that fails so, one time after another."""
    left = iter(told)

    async def work(partition: int) -> None:
        step = next(left, None)
        if step is None:
            seen.append(dict(made.halted))
            seen.append(made.excused)
            raise Done
        raise step(made)

    made, seen = Retrying("partition", work), list[Any]()
    with pytest.raises(Done), capture_logs() as lines:
        await made.hold(3)
    return made, [*lines, *seen]


def lost(_made: Retrying) -> DagbokError:
    return LogLost("commands were removed")


async def test_what_halts_is_tried_again_after_pauses_that_double_up_to_a_limit(clock: Clock) -> None:
    _, told = await tried([lost] * 9)
    assert clock.slept == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert (clock.slept[0], clock.slept[-1]) == (FIRST_PAUSE_S, LONGEST_PAUSE_S)
    assert [(line["event"], line["log_level"]) for line in told[:9]] == [("partition.halted", "error")] * 9
    assert set(told[-2]) == {3}


async def test_an_incident_behind_a_good_spell_begins_with_the_first_pause_again(clock: Clock) -> None:
    def later(made: Retrying) -> DagbokError:
        made.going(3)
        assert not made.halted
        clock.now_s += 3600
        return LogLost("again")

    await tried([lost] * 6 + [later, lost, later])
    assert clock.slept == [1, 2, 4, 8, 16, 32, 1, 2, 1]


async def test_a_long_fold_that_ends_halted_is_no_good_spell(clock: Clock) -> None:
    def folds(_made: Retrying) -> DagbokError:
        clock.now_s += 600
        return LogLost("at its end")

    await tried([folds] * 4)
    assert clock.slept == [1, 2, 4, 8]


@pytest.mark.parametrize(
    "error", [LogError("no broker", code=Code.LOG_UNREACHABLE), StorageFailed("no store")], ids=["broker", "store"]
)
async def test_what_may_pass_is_waited_for_and_halts_nothing(error: DagbokError, clock: Clock) -> None:
    _, told = await tried([lambda _: error] * 3)
    *lines, halted, excused = told
    assert [(line["event"], line["log_level"]) for line in lines] == [("partition.waits", "warning")] * 3
    assert lines[0]["advice"]
    assert (halted, excused) == ({}, frozenset({3}))


async def test_of_a_partition_that_is_gone_nothing_is_told(clock: Clock) -> None:
    made, _ = await tried([lost, lambda _: StorageFailed("away")])
    assert (dict(made.halted), made.excused) == ({}, frozenset())
