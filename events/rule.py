"""The one rule of the log: which commits count (`docs/design/architecture.md`, section 3.2).

A reader applies a commit if and only if it was decided on exactly the history that the reader has, and stands where it
was decided to stand: `after` and `prev` of the seal both equal its own, and `offset` is that of the record. Everything
else is void for everybody. Every reader and every writer goes through this file. `after` and `prev` keep one history
for all, `offset` keeps what a commit says of offsets true (ADR 17); the models in `docs/design/models/` check the
three, and show what breaks without one.
"""

from __future__ import annotations

from typing import Final

import msgspec

from dagbok.events.commit import SEAL_VERSION, Commit, Seal, split_value, value_hash
from dagbok.events.errors import FormatTooNew
from dagbok.events.ids import ZERO_HASH


class Position(msgspec.Struct, frozen=True, gc=False):
    """Where a reader of `events[p]` stands. Every checkpoint and snapshot holds all four.

    Never taken from a record: a reader without one begins at `GENESIS`.
    """

    next_offset: int
    last_command_offset: int
    head_hash: str
    head_offset: int

    def skip(self, offset: int) -> Position:
        """Behind a void record."""
        return msgspec.structs.replace(self, next_offset=offset + 1)

    def applied(self, offset: int, seal: Seal, hash: str) -> Position:
        """Behind an effective commit."""
        return Position(offset + 1, seal.command_offset, hash, offset)


WITH_OFFSET: Final = 2
"""The first seal version that says where the commit stands."""

GENESIS: Final = Position(0, -1, ZERO_HASH, -1)


def is_effective(position: Position, partition: int, offset: int, seal: Seal) -> bool:
    """Whether the commit of the record at `offset` counts for a reader at `position`."""
    return (
        seal.after == position.last_command_offset
        and seal.prev == position.head_hash
        and seal.partition == partition
        and seal.command_offset > seal.after
        and (seal.offset == offset or (seal.offset is None and seal.v < WITH_OFFSET))
    )


def follow(position: Position, partition: int, offset: int, value: bytes) -> tuple[Position, Commit | None]:
    """Read the next record: the position behind it, and the commit when it is effective (none: void).

    Raises `FormatTooNew` for an effective commit of a newer seal version: the reader must halt before it.
    """
    parts = split_value(value)
    if parts is None or not is_effective(position, partition, offset, parts[0]):
        return position.skip(offset), None
    seal, stored_body = parts
    if seal.v > SEAL_VERSION:
        raise FormatTooNew(
            f"the commit at {partition}:{offset} has seal version {seal.v}; this dagbok knows {SEAL_VERSION}"
        )
    hash = value_hash(value)
    return position.applied(offset, seal, hash), Commit(offset, hash, seal, stored_body)
