"""Sends spans from a process of its own (`child.py`): to tell them in the words of OTLP takes the interpreter's lock
for tens of microseconds each, and the event loop beside it would wait for it again and again."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence

import msgspec

from dagbok.agents.tracing.span import Span

ARRIVED, LOST = b"1", b"0"
"""What the child answers to each batch."""
LENGTH_BYTES = 4
"""Of the number before each batch."""


class ChildExporter:
    """The process is started with the first batch, and again when it has died; it ends with this one, however this one
    ends. `environment`: its variables. For one thread, but for `stop`."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self._turn = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._stopped = False

    def export(self, spans: Sequence[Span]) -> bool:
        """Blocks until they have arrived, or have not. Raises `OSError` when no process can be started."""
        batch = msgspec.json.encode(spans)
        with self._turn:
            child = self._running()
            if child is None or child.stdin is None or child.stdout is None:
                return False
            try:
                child.stdin.write(len(batch).to_bytes(LENGTH_BYTES, "big") + batch)
                child.stdin.flush()
                answer = child.stdout.read(1)
            except OSError:
                answer = b""
            if not answer:
                self._end(child)
            return answer == ARRIVED

    def stop(self) -> None:
        """Ends the process, whatever it waits for; what it is sending then has not arrived."""
        self._stopped = True
        child = self._child
        if child is not None:
            child.kill()
        with self._turn:
            if self._child is not None:
                self._end(self._child)

    def _running(self) -> subprocess.Popen[bytes] | None:
        if self._child is None and not self._stopped:
            self._child = subprocess.Popen(
                (sys.executable, "-m", "dagbok.agents.tracing.child"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=self._environment,
                start_new_session=True,  # Ctrl-C is for this process, which says when it is over
            )
            if self._stopped:
                self._child.kill()  # `stop` looked just before
        return self._child

    def _end(self, child: subprocess.Popen[bytes]) -> None:
        self._child = None
        child.kill()
        for pipe in (child.stdin, child.stdout):
            try:
                if pipe is not None:
                    pipe.close()
            except OSError:
                continue  # what was still to be written has no reader
        child.wait()
