"""Several things may be wrong at once: all of them are told."""

from __future__ import annotations

from collections.abc import Sequence


def raise_problems(message: str, problems: Sequence[Exception]) -> None:
    """Raise nothing, the one problem, or an ExceptionGroup of all in the order in which they were found."""
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise ExceptionGroup(message, problems)
