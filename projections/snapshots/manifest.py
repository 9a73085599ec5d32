"""What a snapshot consists of: the position, and the hashes of its parts. Written last, so a snapshot is whole or
absent."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Protocol

import msgspec

from dagbok.events.errors import FormatTooNew
from dagbok.events.rule import Position
from dagbok.projections.artifacts.port import ArtifactKey

MANIFEST_VERSION = 1


class RunParts(msgspec.Struct, frozen=True):
    """The parts of one run, by hash. `closed_ms`: when it was closed (log time), 0 while it is open; `seq`: the
    number of its last event."""

    head: ArtifactKey
    segments: tuple[ArtifactKey, ...]
    closed_ms: int
    seq: int

    def needs(self) -> Iterator[ArtifactKey]:
        """All of them."""
        yield self.head
        yield from self.segments


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot of one partition. `number` grows by one; its parity is the slot; `fold` is `fold_name()`."""

    v: int = MANIFEST_VERSION
    fold: str
    number: int
    partition: int
    position: Position
    clock_ms: int
    remembered: ArtifactKey
    runs: dict[str, RunParts]

    def needs(self) -> Iterator[ArtifactKey]:
        """Every part that this snapshot needs: the roots of the collection of orphans."""
        yield self.remembered
        for parts in self.runs.values():
            yield from parts.needs()


class Slots(Protocol):
    """Where manifests live: two slots per partition, used in turn."""

    def read(self) -> list[bytes]:
        """What is in the slots; none of it need be valid."""
        ...

    def write(self, slot: int, data: bytes) -> None:
        """Replace one slot, durably and as a whole."""
        ...

    def clear(self, slot: int) -> None:
        """Empty one slot."""
        ...


def encode_manifest(manifest: Manifest) -> bytes:
    """SHA-256 of the rest, newline, JSON."""
    body = msgspec.json.encode(manifest)
    return sha256(body).hexdigest().encode() + b"\n" + body


def roots_of(slots: Slots) -> set[ArtifactKey]:
    """Every part that a manifest needs, whichever fold it is of: what a collection of orphans must leave alone.

    Raises `FormatTooNew` for a whole manifest of an unknown format: nobody can tell what it needs. A damaged one needs
    nothing any more.
    """
    needed: set[ArtifactKey] = set()
    for data in slots.read():
        manifest = decode_manifest(data)
        if manifest is not None:
            needed.update(manifest.needs())
        elif _is_whole(data):
            raise FormatTooNew("there is a snapshot of a format that this dagbok does not know")
    return needed


def _is_whole(data: bytes) -> bool:
    claimed, _, body = data.partition(b"\n")
    return sha256(body).hexdigest().encode() == claimed


def decode_manifest(data: bytes) -> Manifest | None:
    """The manifest, or none when it is damaged or was not written by this version of the format."""
    if not _is_whole(data):
        return None
    try:
        manifest = msgspec.json.decode(data.partition(b"\n")[2], type=Manifest)
    except msgspec.MsgspecError:
        return None
    return manifest if manifest.v == MANIFEST_VERSION else None
