"""A server of the tests dies with them, also when they are killed."""

from __future__ import annotations

import subprocess

WATCH = 'cat >/dev/null; kill -9 "$1" 2>/dev/null'


class Watchdog:
    """Kills `pid` as soon as this process is gone: its end of a pipe closes, however it ends.

    It does not depend on a signal of the kernel to a dying parent (Linux has one, bound to the thread that forked).
    """

    def __init__(self, pid: int) -> None:
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", WATCH, "watchdog", str(pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def dismiss(self) -> None:
        """The server has ended: its process id may soon be another one's."""
        self._process.kill()
        self._process.wait()
        if self._process.stdin:
            self._process.stdin.close()
