"""Read what stands at a place in the log: one commit, its events, or the inline bytes of one of its artifacts."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Final, overload
from weakref import WeakKeyDictionary

from dagbok.events.body import StoredEvent, decode_event, stored_events
from dagbok.events.canonical import sha256_hex
from dagbok.events.commit import Seal, split_value
from dagbok.events.errors import ArtifactDamaged, LogCorrupt
from dagbok.events.log.port import EVENTS, Log
from dagbok.events.run.events import CandidateSubmitted, Event, SessionSuspended
from dagbok.events.run.values import ArtifactItem, ArtifactRef

LARGE_BYTES: Final = 256 * 1024
"""Commits of which so many bytes are decoded are kept for the next who asks."""
KEPT: Final = 2
"""How many of them, per log. A commit has 32 MiB at the most, and few are ever read twice."""


class CommitEvents(Sequence[Event]):
    """The events of one commit, each decoded when it is asked for: a commit can have 10,000, of which one is wanted."""

    def __init__(self, stored: Sequence[StoredEvent]) -> None:
        self._stored = stored

    def __len__(self) -> int:
        return len(self._stored)

    @overload
    def __getitem__(self, index: int) -> Event: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Event]: ...

    def __getitem__(self, index: int | slice) -> Event | Sequence[Event]:
        """Raises `FormatTooNew` or `LogCorrupt` when it cannot be decoded."""
        if isinstance(index, slice):
            return [decode_event(item) for item in self._stored[index]]
        return decode_event(self._stored[index])

    def __iter__(self) -> Iterator[Event]:
        return map(decode_event, self._stored)


class _Large:
    """The large commits of one log that were read last."""

    def __init__(self) -> None:
        self._commits: OrderedDict[tuple[int, int], CommitEvents] = OrderedDict()
        self._lock = Lock()

    def get(self, place: tuple[int, int]) -> CommitEvents | None:
        with self._lock:
            found = self._commits.get(place)
            if found is not None:
                self._commits.move_to_end(place)
            return found

    def keep(self, place: tuple[int, int], events: CommitEvents) -> None:
        with self._lock:
            self._commits[place] = events
            while len(self._commits) > KEPT:
                self._commits.popitem(last=False)


_large: WeakKeyDictionary[Log, _Large] = WeakKeyDictionary()
_opening: Final = Lock()


def events_at(log: Log, partition: int, offset: int) -> Sequence[Event]:
    """The events of the commit at `offset` (blocking; any thread). Raises `LogCorrupt`, `LogLost` or `FormatTooNew`; of
    an event that cannot be decoded only when it is asked for.

    What a log has had at an offset never changes, so large commits are kept: the problems of thousands of tasks may
    stand in one."""
    large = _large_of(log)
    events = large.get((partition, offset))
    if events is None:
        parts = split_value(log.value_at(EVENTS, partition, offset))
        if parts is None:
            raise LogCorrupt(f"the record at {partition}:{offset} is no commit")
        seal, stored_body = parts
        events = CommitEvents(stored_events(stored_body, seal.codec, seal.raw_size))
        if seal.raw_size >= LARGE_BYTES:
            large.keep((partition, offset), events)
    return events


async def commit_at(log: Log, partition: int, offset: int) -> tuple[Seal, bytes] | None:
    """Seal and stored body of the record at an offset; none when there is none, or one that is no commit.

    Raises what `Log.read` raises."""
    found = await log.read(EVENTS, partition, offset, 1) if offset >= 0 else ()
    return split_value(found[0].value) if found and found[0].offset == offset else None


def is_proven(ref: ArtifactRef, data: bytes) -> bool:
    """Whether these are the bytes that the reference names, by length and hash."""
    return len(data) == ref.size_bytes and sha256_hex(data) == ref.sha256


def carried(event: Event) -> tuple[ArtifactItem, ...]:
    """What an event hands over, its bytes inline or in the store: `Place.item` counts these."""
    if isinstance(event, CandidateSubmitted):
        return event.artifacts
    return (event.part,) if isinstance(event, SessionSuspended) else ()


def inline_bytes(log: Log, ref: ArtifactRef) -> bytes:
    """The bytes of an artifact that stands inside an event, proven by hash and length (blocking).

    Raises `ArtifactDamaged` when they are not what the reference says.
    """
    place = ref.place
    if place is None:
        raise ValueError(f"artifact {ref.name} is not in the log")
    items = carried(events_at(log, place.partition, place.offset)[place.event])
    data = items[place.item].inline if place.item < len(items) else None
    if data is None or not is_proven(ref, data):
        raise ArtifactDamaged(f"artifact {ref.name} is not at {place.partition}:{place.offset} any more")
    return data


def _large_of(log: Log) -> _Large:
    with _opening:
        large = _large.get(log)
        if large is None:
            large = _large[log] = _Large()
        return large
