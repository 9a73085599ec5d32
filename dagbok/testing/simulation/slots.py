"""Manifest slots in memory."""

from __future__ import annotations


class MemorySlots:
    """Where manifests live."""

    def __init__(self) -> None:
        self._slots: dict[int, bytes] = {}

    def read(self) -> list[bytes]:
        """See `Slots`."""
        return [self._slots[slot] for slot in sorted(self._slots)]

    def write(self, slot: int, data: bytes) -> None:
        """See `Slots`."""
        self._slots[slot] = data

    def clear(self, slot: int) -> None:
        """See `Slots`."""
        self._slots.pop(slot, None)
