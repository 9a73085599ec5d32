"""Which parts of a session a new one takes in, so that neither writing nor reading grows with the number of turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

FACTOR: Final = 2
"""A part that stays is at least so many times as large as all behind it. So a session of n turns has about log2(n)
parts, and each byte is written again about so often."""


def parts_to_keep(sizes: Sequence[int], new: int) -> int:
    """How many of the parts stay, counted from the first, when one of `new` bytes comes; the others go into it."""
    keep = len(sizes)
    while keep and sizes[keep - 1] < FACTOR * new:
        keep -= 1
        new += sizes[keep]
    return keep
