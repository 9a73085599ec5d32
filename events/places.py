"""Read what stands at a place in the log: the events of one commit, or the inline bytes of one of its artifacts."""

from __future__ import annotations

from dagbok.events.body import decode_body
from dagbok.events.canonical import sha256_hex
from dagbok.events.commit import split_value
from dagbok.events.errors import ArtifactDamaged, LogCorrupt
from dagbok.events.log.port import EVENTS, Log
from dagbok.events.run.events import CandidateSubmitted, Event
from dagbok.events.run.values import ArtifactRef


def events_at(log: Log, partition: int, offset: int) -> list[Event]:
    """The events of the commit at `offset` (blocking). Raises `LogCorrupt` or `LogLost`."""
    parts = split_value(log.value_at(EVENTS, partition, offset))
    if parts is None:
        raise LogCorrupt(f"the record at {partition}:{offset} is no commit")
    seal, stored_body = parts
    return decode_body(stored_body, seal.codec, seal.raw_size)


def is_proven(ref: ArtifactRef, data: bytes) -> bool:
    """Whether these are the bytes that the reference names, by length and hash."""
    return len(data) == ref.size_bytes and sha256_hex(data) == ref.sha256


def inline_bytes(log: Log, ref: ArtifactRef) -> bytes:
    """The bytes of an artifact that stands inside an event, proven by hash and length (blocking).

    Raises `ArtifactDamaged` when they are not what the reference says.
    """
    place = ref.place
    if place is None:
        raise ValueError(f"artifact {ref.name} is not in the log")
    event = events_at(log, place.partition, place.offset)[place.event]
    data = event.artifacts[place.item].inline if isinstance(event, CandidateSubmitted) else None
    if data is None or not is_proven(ref, data):
        raise ArtifactDamaged(f"artifact {ref.name} is not at {place.partition}:{place.offset} any more")
    return data
