"""Inline bytes of candidates that were confirmed lately, so that a dispatch can carry them without reading the log."""

from __future__ import annotations

from collections import OrderedDict

from dagbok.events.run.events import CandidateSubmitted
from dagbok.events.run.values import ArtifactRef

KEEP_BYTES = 16 * 1024 * 1024


class RecentPayloads:
    """A bounded memory: what is no longer here is still in the log, where the reference says."""

    def __init__(self, keep_bytes: int = KEEP_BYTES) -> None:
        self._keep_bytes = keep_bytes
        self._size_bytes = 0
        self._candidates: OrderedDict[tuple[int, int], CandidateSubmitted] = OrderedDict()

    def add(self, offset: int, index: int, event: CandidateSubmitted) -> None:
        """Remember the artifacts of the event at (offset, index)."""
        self._candidates[offset, index] = event
        self._size_bytes += _size(event)
        while self._size_bytes > self._keep_bytes:
            self._size_bytes -= _size(self._candidates.popitem(last=False)[1])

    def get(self, ref: ArtifactRef) -> bytes | None:
        """The bytes of an artifact, when they are at hand."""
        if ref.place is None:
            return None
        event = self._candidates.get((ref.place.offset, ref.place.event))
        return None if event is None else event.artifacts[ref.place.item].inline


def _size(event: CandidateSubmitted) -> int:
    return sum([len(item.inline or b"") for item in event.artifacts]) + 500
