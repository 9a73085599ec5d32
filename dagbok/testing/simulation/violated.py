"""What a simulation raises when something does not hold."""

from __future__ import annotations


class Violated(AssertionError):
    """Something that must hold does not. `check`: which of the checks; stable, so that a shortened history can be held
    against the first one."""

    def __init__(self, check: str, what: str) -> None:
        super().__init__(f"{check}: {what}")
        self.check = check
