"""What the operating system says of a process: memory, CPU, children."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterable
from pathlib import Path


def peak_rss_mb() -> float:
    """The most memory that this process has had at once, in MB (2²⁰ bytes).

    `ru_maxrss` would also count what its parent had when it made this process; Linux tells the rest apart as `VmHWM`.
    """
    for line in _lines(Path("/proc/self/status")):
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def children(of: int | str = "self") -> list[int]:
    """The processes that this or another one has started and not ended; empty where the system does not tell."""
    lists = Path(f"/proc/{of}/task").glob("*/children")
    return [int(pid) for file in lists for line in _lines(file) for pid in line.split()]


def cpu_s(pids: Iterable[int]) -> float:
    """User and system time of other processes so far. Raises `OSError` when one is gone."""
    # The number that clock_getcpuclockid(3) makes of a pid, which Python has no function for.
    return sum([time.clock_gettime(~pid << 3 | 2) for pid in pids])


def size_bytes(folder: Path) -> int:
    """All files below a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
