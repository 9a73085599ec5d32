"""Events about commands that changed nothing. They belong to any stream, or to none."""

from __future__ import annotations

import msgspec

from dagbok.events.run.event import Event


class CommandRefused(Event, frozen=True):
    """The command changed nothing. `raw`: its bytes when it could not be decoded or handled (up to 32 KiB)."""

    code: str
    reason: str
    advice: str = ""
    retry: bool = False
    raw: bytes | None = None


class CommandRepeated(Event, frozen=True):
    """The command was decided before, at `offset` of `events` in this partition."""

    offset: int


class CommandsLost(Event, frozen=True):
    """The commands at `from_offset` to `to_offset` of this partition were removed before they were decided, and an
    operator has accepted that. It belongs to no stream."""

    from_offset: int = msgspec.field(name="from")
    to_offset: int = msgspec.field(name="to")
