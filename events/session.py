"""How a session is named."""

from __future__ import annotations

from typing import Final

from dagbok.events.canonical import sha256_hex

NO_SESSION: Final = ""
"""What a session begins from that goes on from no other."""


def session_digest(before: str, keep: int, part_sha256: str) -> str:
    """The name of the session that keeps so many parts of the one named `before` and puts another part behind them: it
    names the content and all that led to it."""
    return sha256_hex(f"{before}\n{keep}\n{part_sha256}".encode())
