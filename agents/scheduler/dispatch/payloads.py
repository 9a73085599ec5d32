"""Inline bytes of candidates that were confirmed lately, so that a dispatch can carry them without reading the log."""

from __future__ import annotations

from collections import OrderedDict

from dagbok.events.run.events import CandidateSubmitted
from dagbok.events.run.values import ArtifactRef

KEEP_BYTES = 16 * 1024 * 1024
ENTRY_BYTES, ITEM_BYTES = 300, 33
"""What an entry and each item in it take beside the bytes themselves."""


class RecentPayloads:
    """A bounded memory: what is no longer here is still in the log, where the reference says."""

    def __init__(self, keep_bytes: int = KEEP_BYTES) -> None:
        self._keep_bytes = keep_bytes
        self._size_bytes = 0
        self._candidates: OrderedDict[tuple[int, int], tuple[bytes | None, ...]] = OrderedDict()

    def add(self, offset: int, index: int, event: CandidateSubmitted) -> None:
        """Remember the artifacts of the event at (offset, index)."""
        # Only the bytes: the rest of the event would be kept for nothing.
        self._candidates[offset, index] = kept = tuple([item.inline for item in event.artifacts])
        self._size_bytes += _size(kept)
        while self._size_bytes > self._keep_bytes:
            self._size_bytes -= _size(self._candidates.popitem(last=False)[1])

    def get(self, ref: ArtifactRef) -> bytes | None:
        """The bytes of an artifact, when they are at hand."""
        if ref.place is None:
            return None
        kept = self._candidates.get((ref.place.offset, ref.place.event))
        return None if kept is None else kept[ref.place.item]


def _size(kept: tuple[bytes | None, ...]) -> int:
    return sum([len(data) + ITEM_BYTES for data in kept if data is not None]) + ENTRY_BYTES
