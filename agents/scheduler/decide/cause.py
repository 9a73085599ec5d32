"""What a decider knows of the command beside its data."""

from __future__ import annotations

import msgspec


class By(msgspec.Struct, frozen=True, gc=False):
    """The command's id, who sent it, and log time in milliseconds."""

    command_id: str
    actor: str
    now_ms: int


class Repeated(Exception):
    """The command was decided before, by the commit at `offset`; nothing changes."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"decided before at offset {offset}")
        self.offset = offset
