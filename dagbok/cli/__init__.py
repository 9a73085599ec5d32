"""The command line: `dagbok run FILE`, `dagbok up`, and commands that look at runs and steer them (`docs/cli.md`).

It is small so that it is there at once: what it needs takes a moment to import, and Ctrl-C in that moment is no reason
for a traceback, nor to interrupt an import inside a library that does not reckon with it.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments say (those of the process by default) and return the exit status. Never raises."""
    with _ended_by_ctrl_c():
        from dagbok.cli.perform import perform
    return perform(list(sys.argv[1:] if arguments is None else arguments))


@contextmanager
def _ended_by_ctrl_c() -> Iterator[None]:
    """Ctrl-C ends the process as it does those that are no Python, unless the program has taken it for itself."""
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
