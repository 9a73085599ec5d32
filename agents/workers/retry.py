"""How a user's function says when trying again may be of use."""

from __future__ import annotations

import math

from dagbok.events.arguments import number
from dagbok.events.run.commands import MAX_RETRY_AFTER_MS


class Retry(Exception):
    """Raised by a worker or verifier that was told when to ask again (`Retry-After` of an HTTP answer, say): no other
    attempt begins before `after_s` seconds are over, up to a day. The usual backoff comes on top, so that not all come
    back at once. Else it is a failure like any other: a worker's spends one attempt, and its message reaches the next.

    Raises `InvalidInput` (`usage`) when `after_s` is negative or no number; True and text are none.
    """

    def __init__(self, message: object = "", *, after_s: float) -> None:
        super().__init__(message)
        self.after_s = number("after_s of Retry", after_s, advice="name a number of seconds from 0")


def retry_after_ms(error: BaseException) -> int:
    """What the error asks for, in milliseconds; 0 when it does not."""
    return math.ceil(min(error.after_s * 1000, MAX_RETRY_AFTER_MS)) if isinstance(error, Retry) else 0
