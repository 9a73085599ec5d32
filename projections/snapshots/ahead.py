"""Segments that are encoded before the cut, a few between any two batches, so that the cut itself is short.

What was encoded ahead and has changed again since is marked as changed again, and is encoded once more by the cut.
"""

from __future__ import annotations

from typing import Final

from dagbok.projections.partition import PartitionState
from dagbok.projections.snapshots.dirty import DirtySegments
from dagbok.projections.snapshots.parts import SEGMENT_TASKS, encode_segment

STEP_SEGMENTS: Final = 8
"""Encoding these takes about 16 ms."""
MOST_STEPS: Final = 500
"""When tasks change faster than they are encoded, the cut is taken all the same."""

Encoded = dict[str, dict[int, bytes]]
"""By stream and number."""


class Ahead:
    """What is encoded for the next cut."""

    def __init__(self) -> None:
        self._encoded: Encoded = {}
        self._steps = 0

    def step(self, state: PartitionState, dirty: DirtySegments) -> bool:
        """Encode some of what has changed, unless the rest is little enough to be cut at once; then it is false."""
        if dirty.count() <= STEP_SEGMENTS or self._steps >= MOST_STEPS:
            return False
        self._steps += 1
        for stream, numbers in dirty.take_some(STEP_SEGMENTS).items():
            nodes = list(state.runs[stream].tasks.values())
            encoded = self._encoded.setdefault(stream, {})
            for number in numbers:
                encoded[number] = encode_segment(nodes[number * SEGMENT_TASKS : (number + 1) * SEGMENT_TASKS])
        return True

    def take(self) -> Encoded:
        """All that was encoded; nothing is from now on."""
        taken, self._encoded, self._steps = self._encoded, {}, 0
        return taken
