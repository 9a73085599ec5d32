"""Old events are read as new ones: each step takes the data of one version to the next, in a chain."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from dagbok.events import upcasters
from dagbok.events.body import decode_body
from dagbok.events.canonical import Json
from dagbok.events.errors import FormatTooNew
from dagbok.events.run.events import EVENTS, RunPaused
from dagbok.events.upcasters import UPCASTERS, Upcaster, upcast

Data = dict[str, Json]


def _renamed(data: Data) -> Data:
    return {"why": data["cause"]}


def _split(data: Data) -> Data:
    return {"reason": data["why"], "words": len(str(data["why"]).split())}


STEPS: dict[tuple[str, int], Upcaster] = {("RunPaused", 1): _renamed, ("RunPaused", 2): _split}


def test_the_chain_begins_at_the_version_that_was_written() -> None:
    assert _upcast(1, 3, {"cause": "out to lunch"}) == {"reason": "out to lunch", "words": 3}
    assert _upcast(2, 3, {"why": "lunch"}) == {"reason": "lunch", "words": 1}
    assert _upcast(1, 2, {"cause": "lunch"}) == {"why": "lunch"}
    assert _upcast(3, 3, {"reason": "lunch"}) == {"reason": "lunch"}


def test_a_missing_step_is_an_error_and_not_a_guess() -> None:
    with pytest.raises(KeyError):
        upcast("RunPaused", 1, 4, b'{"cause":"lunch"}', STEPS)


def _upcast(version: int, current: int, data: Data) -> Data:
    read: Data = msgspec.json.decode(upcast("RunPaused", version, current, msgspec.json.encode(data), STEPS))
    return read


@pytest.fixture
def version_two(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, str], RunPaused]:
    """A world in which `RunPaused` is at version 2, and read from a body of any version."""

    def step(data: Data) -> Data:
        return {"reason": data["cause"]}

    monkeypatch.setattr(RunPaused, "version", 2)
    monkeypatch.setitem(UPCASTERS, ("RunPaused", 1), step)

    def read(version: int, data: str) -> RunPaused:
        body = f'{{"events":[{{"type":"RunPaused","version":{version},"data":{data}}}]}}'.encode()
        (event,) = decode_body(body, "json", len(body))
        assert isinstance(event, RunPaused)
        return event

    return read


def test_readers_see_only_the_present_version(version_two: Callable[[int, str], RunPaused]) -> None:
    assert version_two(1, '{"cause":"lunch"}') == version_two(2, '{"reason":"lunch"}') == RunPaused("lunch")


def test_a_later_version_halts_the_reader(version_two: Callable[[int, str], RunPaused]) -> None:
    with pytest.raises(FormatTooNew, match="RunPaused version 3"):
        version_two(3, '{"reason":"lunch"}')


def test_every_event_can_be_read_from_its_first_version_on() -> None:
    needed = {(name, version) for name, event in EVENTS.items() for version in range(1, event.version)}
    assert set(upcasters.UPCASTERS) == needed
