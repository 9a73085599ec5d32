"""What fails again and again for one cause, said often enough to be seen and seldom enough not to drown the rest."""

from __future__ import annotations

from typing import Final

FIRST_S: Final = 60.0
LONGEST_S: Final = 3_600.0
"""The same is said again after a minute, then after twice as long each time, and once an hour at last."""
OVER_S: Final = 60.0
"""What has not come for so long is over: the next time it is news."""


class Repeats:
    """Of one activity. Times are seconds of a monotonic clock that the caller reads."""

    def __init__(self) -> None:
        self._cause = ""
        self._seen_s = self._due_s = self._every_s = 0.0
        self._untold = 0
        self.in_a_row = 0
        """How often the last cause has come without a break."""

    def count(self, cause: str, now_s: float) -> int:
        """It has come now: how often it has since it was last said, if it is to be said, else 0."""
        if cause != self._cause or now_s - self._seen_s > OVER_S:
            self._cause, self._every_s, self._due_s = cause, FIRST_S, now_s
            self._untold = self.in_a_row = 0
        self._seen_s = now_s
        self._untold += 1
        self.in_a_row += 1
        if now_s < self._due_s:
            return 0
        self._due_s, self._every_s = now_s + self._every_s, min(2 * self._every_s, LONGEST_S)
        times, self._untold = self._untold, 0
        return times
