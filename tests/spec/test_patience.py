"""What passes is waited out, with a word; what does not is raised."""

from __future__ import annotations

import pytest

from dagbok.events.errors import DagbokError, LogLost, StorageFailed
from dagbok.projections import patience
from dagbok.projections.patience import patiently


class Work:
    """Fails with these errors, one after the other, then is done."""

    def __init__(self, *errors: DagbokError) -> None:
        self._errors = list(errors)
        self.told = list[tuple[str, float]]()

    async def __call__(self) -> str:
        if self._errors:
            raise self._errors.pop(0)
        return "done"

    def waits(self, error: DagbokError, delay_s: float) -> None:
        self.told.append((error.message, delay_s))


async def test_what_passes_is_tried_again_and_each_wait_is_told() -> None:
    work = Work(StorageFailed("one"), StorageFailed("two"), StorageFailed("three"))
    assert await patiently(work, work.waits, first_delay_s=0.001) == "done"
    assert work.told == [("one", 0.001), ("two", 0.002), ("three", 0.004)]


async def test_what_does_not_pass_is_raised_at_once() -> None:
    work = Work(StorageFailed("one"), LogLost("gone"))
    with pytest.raises(LogLost):
        await patiently(work, work.waits, first_delay_s=0.001)
    assert [message for message, _ in work.told] == ["one"]


async def test_the_delay_has_a_limit() -> None:
    work = Work(*[StorageFailed("again") for _ in range(4)])
    await patiently(work, work.waits, first_delay_s=0.001, longest_delay_s=0.002)
    assert [delay_s for _, delay_s in work.told] == [0.001, 0.002, 0.002, 0.002]


async def test_what_ran_for_longer_than_it_had_waited_begins_with_the_first_delay_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = iter((0.0, 0.0, 0.0, 0.0, 0.0, 9.0, 9.0, 9.0, 9.0))  # two readings for each time; the third took 9 s
    monkeypatch.setattr(patience, "monotonic", lambda: next(now_s))
    work = Work(*[StorageFailed("again") for _ in range(4)])
    await patiently(work, work.waits, first_delay_s=0.001)
    assert [delay_s for _, delay_s in work.told] == [0.001, 0.002, 0.001, 0.002]
