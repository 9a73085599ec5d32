"""How often repeated tests repeat: one setting for all of them.

`make test` leaves `DAGBOK_TEST_SCALE` unset (small); `make test-all` sets it to ``full``.
"""

from __future__ import annotations

import os
from typing import Final

SCALES: Final = ("small", "full")


def scale(small: int, full: int) -> int:
    """Return `small` or `full` as `DAGBOK_TEST_SCALE` says. Raises `ValueError` for a value that is neither."""
    chosen = os.environ.get("DAGBOK_TEST_SCALE", "small")
    if chosen not in SCALES:
        raise ValueError(f"DAGBOK_TEST_SCALE is {chosen!r}; it must be one of {', '.join(SCALES)}")
    return full if chosen == "full" else small
