"""The traceback of a failed function as its author wants to read it: their frames, not those of dagbok around them."""

from __future__ import annotations

from pathlib import Path
from traceback import FrameSummary, StackSummary, TracebackException
from typing import Final

from dagbok.events.errors import DagbokError

MAX_FRAMES: Final = 12
ALL_FRAMES: Final = 48
"""So many are looked at, the last ones: dagbok's own stand at the beginning."""
OURS: Final = f"{Path(__file__).parents[2]}/"
"""Where dagbok lies, as its frames say it."""


def users_traceback(error: BaseException) -> str:
    """The traceback with the last frames that are not dagbok's, also of what the exception came from. Where all are
    dagbok's they stay, since it is dagbok then that has to be looked at; but of what dagbok says to the user by its own
    errors, nothing is left."""
    told = TracebackException.from_exception(error, limit=-ALL_FRAMES)
    if isinstance(error, DagbokError) and all(_is_ours(frame) for frame in told.stack):
        return ""
    _shorten(told)
    return "".join(told.format())


def _shorten(told: TracebackException) -> None:
    pending = [told]
    while pending:
        one = pending.pop()
        users = [frame for frame in one.stack if not _is_ours(frame)]
        one.stack = StackSummary.from_list((users or list(one.stack))[-MAX_FRAMES:])
        pending += [other for other in (one.__cause__, one.__context__) if other is not None]
        pending += one.exceptions or ()


def _is_ours(frame: FrameSummary) -> bool:
    return frame.filename.startswith(OURS)
