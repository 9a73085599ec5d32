"""A line for the person who waits."""

from __future__ import annotations

import sys


def tell(line: str) -> None:
    """On the terminal, even where pytest keeps what a test prints; without a terminal to standard error."""
    try:
        with open("/dev/tty", "w") as terminal:
            terminal.write(f"{line}\n")
    except OSError:
        sys.stderr.write(f"{line}\n")
