"""A session outside any run: what a worker puts down is there for as long as its context is."""

from __future__ import annotations

from dagbok.agents.workers.sessions.operations import encode_part, put
from dagbok.agents.workers.sessions.session import TaskSession
from dagbok.events.canonical import sha256_hex
from dagbok.events.envelope import SessionParts
from dagbok.events.run.values import ArtifactRef
from dagbok.events.session import NO_SESSION, session_digest


def session_in_memory(value: object = None) -> TaskSession:
    """One that was put down once, with this JSON value; with none, one that never was.

    Raises `InvalidInput` (`invalid_outcome`) for what is no JSON value."""
    if value is None:
        return TaskSession(None, lambda ref: b"", _accepted)
    part = encode_part([put((), value)])
    sha256 = sha256_hex(part)
    ref = ArtifactRef("session", sha256, len(part), "application/json")
    found = SessionParts(turn=1, digest=session_digest(NO_SESSION, 0, sha256), parts=(ref,))
    return TaskSession(found, lambda ref: part, _accepted)


async def _accepted(turn: int, keep: int, part: bytes) -> None:
    """There is no log that could refuse it."""
