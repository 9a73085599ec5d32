"""Runs that are closed for long: listed beside the manifest, in chunks that do not change, so that a snapshot costs
what has happened since the last one and not what ever happened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from dagbok.projections.artifacts.port import ArtifactKey, ScopedArtifacts
from dagbok.projections.snapshots.manifest import IndexChunk, RunParts
from dagbok.projections.snapshots.parts import put_part, read_part
from dagbok.projections.task_graph.state import RunState

CHUNK_RUNS: Final = 1_000

Entries = dict[str, RunParts]
"""The parts of runs by their streams."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Entries).decode


class Listed(NamedTuple):
    """The parts of a run, and the chunk that lists them."""

    parts: RunParts
    chunk: ArtifactKey


def read_chunk(store: ScopedArtifacts, key: ArtifactKey) -> Entries:
    """The runs of a chunk. Raises one of `DAMAGED` (`loader.py`), or `StorageFailed`."""
    return _decode(read_part(store, key))


class ColdRuns:
    """The runs that lie as parts only, and those that came back and are still listed in a chunk as they were."""

    def __init__(self) -> None:
        self._fresh: Entries = {}
        self._in_chunk: dict[str, ArtifactKey] = {}
        self._back: dict[str, Listed] = {}

    def __contains__(self, stream: str) -> bool:
        return stream in self._fresh or stream in self._in_chunk

    def __iter__(self) -> Iterator[str]:
        yield from self._fresh
        yield from self._in_chunk

    def add(self, stream: str, parts: RunParts) -> None:
        """The run goes out of memory; the newest manifest lists it."""
        self._fresh[stream] = parts

    def add_chunk(self, key: ArtifactKey, streams: Iterable[str]) -> None:
        """These runs are listed in a chunk."""
        self._in_chunk.update(dict.fromkeys(streams, key))

    def find(self, store: ScopedArtifacts, stream: str) -> RunParts | None:
        """The parts of a run; none when it is not here. Blocks, and raises one of `DAMAGED`, or `StorageFailed`."""
        if (parts := self._fresh.get(stream)) is not None:
            return parts
        if (key := self._in_chunk.get(stream)) is None:
            return None
        return read_chunk(store, key)[stream]

    def came_back(self, stream: str, parts: RunParts) -> None:
        """The run is in memory again."""
        self._fresh.pop(stream, None)
        if (chunk := self._in_chunk.pop(stream, None)) is not None:
            self._back[stream] = Listed(parts, chunk)

    def leave_again(self, runs: Mapping[str, RunState], is_dirty: Callable[[str], bool]) -> list[str]:
        """The runs that came back and are as their chunk has them: they need no memory."""
        left = []
        for stream, (parts, chunk) in self._back.items():
            run = runs.get(stream)
            if run is not None and run.stream_seq == parts.seq and not is_dirty(stream):
                self._in_chunk[stream] = chunk
                left.append(stream)
        for stream in left:
            del self._back[stream]
        return left

    def listing(self) -> Listing:
        """What the next manifest has to know, as it is now."""
        return Listing(dict(self._fresh), dict(self._back))

    def written(self, moved: Mapping[str, Listed], changed: Iterable[str]) -> None:
        """A manifest was written: `moved` are listed in new chunks, and the `changed` ones by the manifest."""
        for stream in changed:
            self._back.pop(stream, None)
        for stream, listed in moved.items():
            if stream in self:
                self._fresh.pop(stream, None)
                self._in_chunk[stream] = listed.chunk
            else:  # it has come back meanwhile
                self._back[stream] = listed


class Listing(NamedTuple):
    """`fresh`: runs that the manifest before lists itself, and that go into a chunk. `back`: runs of a chunk that are
    in memory; those that have changed leave the chunk."""

    fresh: Entries
    back: Mapping[str, Listed]

    def known(self, stream: str, runs: Entries) -> RunParts | None:
        """The parts of a run that the snapshot before has."""
        if (parts := runs.get(stream)) is not None:
            return parts
        return self.back[stream].parts if stream in self.back else None

    def chunks(
        self, before: tuple[IndexChunk, ...], changed: Iterable[str], store: ScopedArtifacts
    ) -> tuple[tuple[IndexChunk, ...], dict[str, Listed]]:
        """The chunks of the next manifest, stored, and what moved into new ones (blocking). A chunk is written anew
        only when a run leaves it, or when it is the last one and not full."""
        gone = {stream for stream in changed if stream in self.back}
        altered = {self.back[stream].chunk for stream in gone}
        waiting, kept = dict(self.fresh), list[IndexChunk]()
        for number, chunk in enumerate(before, 1):
            is_open = number == len(before) and chunk.runs < CHUNK_RUNS and bool(self.fresh)
            if chunk.key in altered or is_open:
                waiting = read_chunk(store, chunk.key) | waiting
            else:
                kept.append(chunk)
        entries = iter([(stream, parts) for stream, parts in waiting.items() if stream not in gone])
        moved: dict[str, Listed] = {}
        while some := dict(islice(entries, CHUNK_RUNS)):
            key = put_part(store, _encode(some))
            kept.append(IndexChunk(key, len(some)))
            moved.update((stream, Listed(parts, key)) for stream, parts in some.items())
        return tuple(kept), moved
