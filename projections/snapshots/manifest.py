"""What a snapshot consists of: the position, and the hashes of its parts. Written last, so a snapshot is whole or
absent."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Protocol

import msgspec

from dagbok.events.rule import Position
from dagbok.projections.artifacts.port import ArtifactKey

MANIFEST_VERSION = 2
"""1 listed every run itself; it is read as before."""


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


class IndexChunk(msgspec.Struct, frozen=True):
    """A list of `runs` runs that were closed for long, with their parts: see `index.py`."""

    key: ArtifactKey
    runs: int


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot of one partition. `number` grows by one; its parity is the slot; `fold` is `fold_name()`. `runs` are
    those that are open or were closed lately; the others stand in the chunks of `closed`."""

    v: int = MANIFEST_VERSION
    fold: str
    number: int
    partition: int
    position: Position
    clock_ms: int
    remembered: ArtifactKey
    runs: dict[str, RunParts]
    closed: tuple[IndexChunk, ...] = ()

    def needs(self) -> Iterator[ArtifactKey]:
        """Every part that this snapshot names itself; what its chunks name, it needs too."""
        yield self.remembered
        yield from (chunk.key for chunk in self.closed)
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


def is_whole(data: bytes) -> bool:
    """Whether these are the bytes of a manifest as it was written, of whatever version."""
    claimed, _, body = data.partition(b"\n")
    return sha256(body).hexdigest().encode() == claimed


def decode_manifest(data: bytes) -> Manifest | None:
    """The manifest, or none when it is damaged or was not written by this version of the format."""
    if not is_whole(data):
        return None
    try:
        manifest = msgspec.json.decode(data.partition(b"\n")[2], type=Manifest)
    except msgspec.MsgspecError:
        return None
    return manifest if 1 <= manifest.v <= MANIFEST_VERSION else None
