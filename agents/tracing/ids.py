"""Ids of traces and spans. They are derived, so a replay, a takeover and any number of processes name the same spans,
and a worker knows the id of a span that its owner has not sent yet."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from dagbok.events.canonical import canonical

_HEX: Final = frozenset("0123456789abcdef")


def trace_id(run: str) -> int:
    """128 bits: the id of the run itself, or a hash of it when it is not 32 hex digits."""
    id = int(run, 16) if len(run) == 32 and _HEX.issuperset(run) else 0
    return id or _hashed(16, "trace", run)


def run_span_id(run: str, part: int = 0) -> int:
    """64 bits. `part`: how often the run had failed and was reopened before this part of it began."""
    return _hashed(8, "run", run, part)


def task_span_id(run: str, task: str, part: int = 0) -> int:
    """64 bits. `part`: how often the task had ended, and gone on after all, before this part of it began."""
    return _hashed(8, "task", run, task, part)


def attempt_span_id(run: str, task: str, epoch: int) -> int:
    """64 bits."""
    return _hashed(8, "attempt", run, task, epoch)


def _hashed(size_bytes: int, *parts: str | int) -> int:
    """Never 0, which OpenTelemetry takes for no id."""
    return int.from_bytes(sha256(canonical(parts)).digest()[:size_bytes], "big") or 1
