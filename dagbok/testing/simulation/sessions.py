"""The history of every session, told from the events alone: one line of turns, written by who held the attempt, and
gone on with where it was put down."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from dagbok.agents.workers.sessions.operations import value_of
from dagbok.events.run import events as e
from dagbok.events.run.values import Claim
from dagbok.events.session import NO_SESSION, session_digest
from dagbok.testing.simulation.violated import Violated

Check = Callable[[Any, Any], bool]


class Kept(msgspec.Struct):
    """A session so far. `parts`: none in the place of one that is in the store."""

    turn: int = 0
    digest: str = NO_SESSION
    parts: list[bytes | None] = []
    value: Any = None


class SessionAudit:
    """`events`: with their streams, in their order. `is_right`: whether a value may have been put down behind another
    one (none at first)."""

    def __init__(self, events: Iterable[tuple[str, e.Event]], is_right: Check) -> None:
        self._events, self._is_right = events, is_right
        self._kept: dict[tuple[str, str], Kept] = {}
        self._claims: dict[tuple[str, str], tuple[int, Claim]] = {}

    def check(self) -> None:
        """Raises `Violated`."""
        for stream, event in self._events:
            if isinstance(event, e.AttemptStarted):
                self._claims[stream, event.task] = (event.epoch, event.claim)
            elif isinstance(event, e.SessionSuspended):
                self._suspended((stream, event.task), event)
            elif isinstance(event, e.SessionResumed):
                kept = self._kept.get((stream, event.task), Kept())
                at = (event.turn, event.digest)
                _hold((kept.turn, kept.digest) == at, f"{stream}/{event.task} goes on with turn {event.turn}")

    def _suspended(self, key: tuple[str, str], event: e.SessionSuspended) -> None:
        kept = self._kept.setdefault(key, Kept())
        by = (event.epoch, event.claim)
        _hold(self._claims.get(key) == by, f"{key}: turn {event.turn} is put down by who does not hold the attempt")
        _hold(event.turn == kept.turn + 1, f"{key}: turn {event.turn} follows turn {kept.turn}")
        digest = session_digest(kept.digest, event.keep, event.part.sha256)
        _hold(event.digest == digest, f"{key}: turn {event.turn} has another digest than follows")
        kept.turn, kept.digest = event.turn, digest
        kept.parts[event.keep :] = [event.part.inline]
        parts = [part for part in kept.parts if part is not None]
        if len(parts) == len(kept.parts):
            value = value_of(parts)
            said = f"{key}: turn {event.turn} says {value!r} behind {kept.value!r}"
            _hold(self._is_right(kept.value, value), said[:300])
            kept.value = value


def _hold(holds: bool, what: str) -> None:
    if not holds:
        raise Violated("sessions", what)
