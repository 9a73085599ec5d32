"""The log, as one session sees it."""

from __future__ import annotations

from dagbok.agents.workers.sessions.session import TaskSession
from dagbok.events.canonical import sha256_hex
from dagbok.events.envelope import SessionParts
from dagbok.events.run.values import ArtifactRef
from dagbok.events.session import NO_SESSION, session_digest


class Store:
    """What stands in the parts of a session."""

    def __init__(self) -> None:
        self.found: SessionParts | None = None
        self.written = 0
        self._by_hash: dict[str, bytes] = {}

    @property
    def parts(self) -> list[bytes]:
        """The bytes of the parts, in order."""
        return [self._by_hash[ref.sha256] for ref in self.found.parts] if self.found else []

    @property
    def turn(self) -> int:
        """How often the session was put down."""
        return self.found.turn if self.found else 0

    @property
    def digest(self) -> str:
        """Of the session as it was put down last."""
        return self.found.digest if self.found else NO_SESSION

    def session(self) -> TaskSession:
        """As the next attempt finds it."""
        return TaskSession(self.found, lambda ref: self._by_hash[ref.sha256], self.put_down)

    async def put_down(self, turn: int, keep: int, part: bytes) -> None:
        before = self.found.parts if self.found else ()
        assert (turn, keep <= len(before)) == (self.turn + 1, True)
        sha256 = sha256_hex(part)
        self._by_hash[sha256] = part
        self.written += len(part)
        ref = ArtifactRef("session", sha256, len(part), "application/json")
        self.found = SessionParts(
            turn=turn, digest=session_digest(self.digest, keep, sha256), parts=(*before[:keep], ref)
        )
