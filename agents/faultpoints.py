"""Named places where a process may be made to die, so that tests can kill it exactly there.

`DAGBOK_FAULT=owner.appended:3` kills the process (SIGKILL, nothing is tidied up) when it reaches that place for the
third time. Without the variable a place costs one comparison.
"""

from __future__ import annotations

import os
import signal
from typing import Final

COMMAND_APPENDED: Final = "outbox.appended"
BATCH_DECIDED: Final = "owner.decided"
BATCH_APPENDED: Final = "owner.appended"
OUTPUTS_SENT: Final = "owner.outputs_sent"
DISPATCH_TAKEN: Final = "worker.taken"
FUNCTION_BEGINS: Final = "worker.begins"
FUNCTION_DONE: Final = "worker.done"
RESULT_ENCODED: Final = "worker.encoded"
CHUNKS_WRITTEN: Final = "snapshot.chunks_written"

ALL: Final = (
    COMMAND_APPENDED,
    BATCH_DECIDED,
    BATCH_APPENDED,
    OUTPUTS_SENT,
    DISPATCH_TAKEN,
    FUNCTION_BEGINS,
    FUNCTION_DONE,
    RESULT_ENCODED,
    CHUNKS_WRITTEN,
)

_NAME, _, _TIMES = os.environ.get("DAGBOK_FAULT", "").partition(":")
_left = int(_TIMES or 1)


def reach(place: str) -> None:
    """The process is at `place`."""
    if place == _NAME:
        _count_down()


def _count_down() -> None:
    global _left
    _left -= 1
    if _left <= 0:
        os.kill(os.getpid(), signal.SIGKILL)
