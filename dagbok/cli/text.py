"""How values look to a person: durations, times, counts, and text that may come from anywhere."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterable, Sequence

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")
_DERIVED = re.compile(r"[0-9a-f]{32}")
SHORT = 12
STATUS_ORDER = (
    *("verified", "skipped", "running", "verifying", "ready", "waiting", "backoff", "blocked", "failed", "cancelled"),
    "superseded",
)


def clean(text: str, width: int = 100) -> str:
    """One line of at most `width` characters: control characters would reach the terminal."""
    line = _CONTROL.sub(" ", text).strip()
    return line if len(line) <= width else line[: width - 1] + "…"


def short(id: str) -> str:
    """A derived id by its first digits, which commands take too; any other id as it is."""
    return id[:SHORT] if _DERIVED.fullmatch(id) else id


def duration(ms: int | float) -> str:
    """`3 ms`, `1.2 s`, `2 m 05 s`, `1 h 03 m`."""
    if ms < 1000:
        return f"{max(0, round(ms))} ms"
    if ms < 100_000:
        return f"{ms / 1000:.1f} s"
    seconds = round(ms / 1000)
    if seconds < 3600:
        return f"{seconds // 60} m {seconds % 60:02d} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60:02d} m"


def size(size_bytes: int) -> str:
    """`900 B`, `1.5 KiB`, `20.0 MiB`."""
    if size_bytes < 1024:
        return f"{size_bytes} B"
    number = float(size_bytes)
    for unit in ("KiB", "MiB"):
        number /= 1024
        if number < 1024:
            return f"{number:.1f} {unit}"
    return f"{number / 1024:.1f} GiB"


def faint(line: str) -> str:
    """The line, dim where a person sees it: on a terminal, unless `NO_COLOR` is set (no-color.org)."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return line
    return f"\x1b[2m{line}\x1b[0m"


def moment(ms: int) -> str:
    """A time of the log in the time zone of this machine."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(ms / 1000))


def clock(ms: int) -> str:
    """The time of day, with milliseconds."""
    return f"{time.strftime('%H:%M:%S', time.localtime(ms // 1000))}.{ms % 1000:03d}"


def plural(count: int, word: str) -> str:
    """`1 task`, `2 tasks`."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def counts(by_status: Iterable[tuple[str, int]]) -> str:
    """`390 verified, 2 running`: those that are not zero, always in the same order."""
    named = sorted(by_status, key=lambda pair: STATUS_ORDER.index(pair[0]))
    return ", ".join([f"{number} {status}" for status, number in named if number])


def columns(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    """Lines whose fields stand under each other; the last one is ragged."""
    if not rows:
        return
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]) - 1)]
    for row in rows:
        fields = [field.ljust(width) for field, width in zip(row, widths, strict=False)]
        yield "  ".join([*fields, row[-1]]).rstrip()
