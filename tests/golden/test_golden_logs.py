"""Every log that was ever released is read to the state that it was read to then.

A failure here means that logs of users would be read differently: an event was renamed, a default changed, or a fold
gives another state. The golden log is right and the code is not: bring a new version of the event with an upcaster, or
keep the old meaning. New fields of the state are no difference; new events need a log of their own (`record.py`).
"""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from dagbok.events.body import decode_body
from dagbok.events.canonical import Json
from dagbok.events.commit import Commit, value_hash
from dagbok.events.rule import GENESIS, follow
from dagbok.events.run.events import EVENTS, Event
from dagbok.projections.partition import PartitionState, apply
from tests.golden.files import formats, read_state, read_values


def _effective(format: int) -> list[tuple[Commit, list[Event]]]:
    position, commits = GENESIS, []
    for offset, value in enumerate(read_values(format)):
        position, commit = follow(position, 0, offset, value)
        if commit is not None:
            events = decode_body(commit.stored_body, commit.seal.codec, commit.seal.raw_size)
            commits.append((commit, events))
    return commits


def _folded(format: int) -> PartitionState:
    state = PartitionState(0)
    for commit, events in _effective(format):
        apply(state, commit, events)
    return state


@pytest.mark.parametrize("format", formats())
def test_a_golden_log_is_folded_to_the_state_that_was_recorded_with_it(format: int) -> None:
    folded: Json = msgspec.json.decode(msgspec.json.encode(_folded(format)))
    assert _only_known(folded, known := read_state(format)) == known


@pytest.mark.parametrize("format", formats())
def test_the_chain_of_a_golden_log_ends_at_its_head(format: int) -> None:
    """What counts and what is void is decided as it was, and every value still has its hash."""
    values, commits = read_values(format), _effective(format)
    position = _folded(format).position
    assert [commit.hash for commit, _ in commits] == [value_hash(values[commit.offset]) for commit, _ in commits]
    assert position.head_hash == commits[-1][0].hash
    assert len(commits) < len(values), "there are void records in it"


@pytest.mark.parametrize("format", formats())
def test_events_of_a_golden_log_say_what_they_said(format: int) -> None:
    """Read and written again, each has every value that it was recorded with, by the same name."""
    for commit, events in _effective(format):
        if commit.seal.codec == "json":
            recorded = msgspec.json.decode(commit.stored_body)["events"]
            again: Json = [msgspec.json.decode(msgspec.json.encode(event)) for event in events]
            assert _only_known(again, [item["data"] for item in recorded]) == [item["data"] for item in recorded]


def test_every_event_stands_in_a_golden_log() -> None:
    seen = Counter(type(event).__name__ for format in formats() for _, events in _effective(format) for event in events)
    assert set(seen) == set(EVENTS)


def test_golden_logs_have_a_compressed_commit_and_every_end_of_a_run() -> None:
    codecs = {commit.seal.codec for format in formats() for commit, _ in _effective(format)}
    assert codecs == {"json", "json+zstd"}
    ends = {run.status for format in formats() for run in _folded(format).runs.values()}
    assert ends == {"succeeded", "failed", "cancelled", "running", "blocked", "paused"}


def _only_known(value: Json, known: Json) -> Json:
    """The value without the fields that were not there when `known` was recorded."""
    if isinstance(value, dict) and isinstance(known, dict):
        return {name: _only_known(item, known[name]) for name, item in value.items() if name in known}
    if isinstance(value, list) and isinstance(known, list) and len(value) == len(known):
        return [_only_known(item, other) for item, other in zip(value, known, strict=True)]
    return value
