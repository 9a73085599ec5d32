"""Servers that tests start themselves: they end with the test run, also when that is killed."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1


def dies_with_me(signal_number: signal.Signals) -> Callable[[], None]:
    """For `preexec_fn`: the child gets this signal when the thread that started it ends, however it ends. Linux has
    it; elsewhere a killed test run leaves its servers."""
    parent = os.getpid()
    library = ctypes.CDLL(None) if sys.platform == "linux" else None

    def set_up() -> None:
        if library is not None:
            library.prctl(_PR_SET_PDEATHSIG, signal_number)
            if os.getppid() != parent:
                os._exit(1)

    return set_up


def free_port() -> int:
    """A port of the loopback address that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
