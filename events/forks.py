"""A process that was forked from one that decides or works is not that process: it has a copy of its state, its
connections and its event loop, and none of its threads. What it does for itself is its own affair; it must not go on in
the place of its parent."""

from __future__ import annotations

import asyncio
import os
import weakref
from contextlib import suppress
from typing import Final, NoReturn

EXIT_STATUS: Final = 70

_loops: Final[weakref.WeakSet[asyncio.AbstractEventLoop]] = weakref.WeakSet()


class Origin:
    """The process in which this was made."""

    def __init__(self) -> None:
        self._pid = os.getpid()

    def stay(self) -> None:
        """Return in that process; a child of it ends here and now. Well below a microsecond."""
        if os.getpid() != self._pid:
            end_child()


def no_child_in(loop: asyncio.AbstractEventLoop) -> None:
    """A child that comes back into this event loop ends there, before it takes what is sent to its parent. A child that
    does its work and ends by itself, or is replaced by another program, is left alone."""
    _loops.add(loop)


def end_child() -> NoReturn:
    """End this process at once, with a line on standard error: nothing is flushed, closed or handed back, since all of
    it belongs to the parent."""
    said = (
        f"dagbok: process {os.getpid()}, forked within process {os.getppid()}, came back from the function that forked "
        "it, and ends here: let a child end by os._exit(), or start it by subprocess or multiprocessing\n"
    )
    with suppress(OSError):
        os.write(2, said.encode())
    os._exit(EXIT_STATUS)


def _in_child() -> None:
    for loop in list(_loops):
        with suppress(RuntimeError):  # closed
            loop.call_soon_threadsafe(end_child)


os.register_at_fork(after_in_child=_in_child)
