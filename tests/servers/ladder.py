"""Which server a test runs against: one that is named, one in a container, one started here; else a failure that says
what to do.

A test that needs a server never skips: where none can be had, what it would have shown is not known.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Generic, TypeVar

Server = TypeVar("Server")


class NoServer(Exception):
    """No rung applies. The message says why each does not, and what to install."""


class NotHere(Exception):
    """A rung does not apply on this machine; the message says why."""


@dataclass(frozen=True)
class Rung(Generic[Server]):
    """One way to a server. `start` raises `NotHere` when it is no way on this machine; the context that it returns
    starts the server and stops it."""

    name: str
    start: Callable[[], AbstractContextManager[Server]]


def first_that_applies(
    what: str, rungs: Sequence[Rung[Server]], advice: str
) -> tuple[str, AbstractContextManager[Server]]:
    """The first rung that applies, and its server, not started yet. Raises `NoServer`."""
    reasons: list[str] = []
    for rung in rungs:
        try:
            return rung.name, rung.start()
        except NotHere as error:
            reasons.append(f"{rung.name}: {error}")
    raise NoServer(f"no {what} for the tests. {advice}\n" + "\n".join(reasons))


def named(environment: Mapping[str, str], variable: str) -> str:
    """What the variable names. Raises `NotHere` when it is not set."""
    if value := environment.get(variable, "").strip():
        return value
    raise NotHere(f"{variable} is not set")


def docker_answers(ping: Callable[[], object]) -> None:
    """Raises `NotHere` unless an engine answers. The client alone proves nothing, and without an engine even the
    client library's constructor raises."""
    try:
        ping()
        return
    except Exception as error:  # the library lets pass whatever its transport raises
        kind = type(error).__name__
    # It leaves the socket that it could not connect to the collector of garbage, who would warn in the midst of a test.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
    raise NotHere(f"no docker engine answers ({kind})")
