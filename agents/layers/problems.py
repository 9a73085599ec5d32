"""Several things may be wrong at once: all of them are told."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from dagbok.events.written import problems_of


def raise_problems(message: str, problems: Sequence[Exception]) -> None:
    """Raise nothing, the one problem, or an ExceptionGroup of all in the order in which they were found. Its message
    tells each of them."""
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise ExceptionGroup(f"{message}: {'; '.join(map(told, problems))}", problems)


def told(problem: Exception) -> str:
    """A problem on one line, with where it is. The text of a KeyError would be quoted, and
    that of a group counted."""
    where = " ".join(getattr(problem, "__notes__", ()))
    if isinstance(problem, ValidationError):
        return f"{where}: {problems_of(problem)}" if where else problems_of(problem)
    quoted = isinstance(problem, KeyError | ExceptionGroup) and problem.args
    return " ".join(f"{problem.args[0] if quoted else problem} {where}".split())
