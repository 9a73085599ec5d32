"""A run in parts: a head, and its tasks in segments of 1,000, so that a snapshot writes only what changed; and how
a part lies in the store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
import zstandard

from dagbok.projections.artifacts.port import ArtifactKey, ScopedArtifacts
from dagbok.projections.partition import Remembered
from dagbok.projections.snapshots.sharing import Sharing
from dagbok.projections.task_graph.state import RunState, TaskNode

SEGMENT_TASKS: Final = 1_000

# JSON, because the payloads inside a spec are JSON already and go through as they are.
_encode = msgspec.json.Encoder().encode
_decode_head = msgspec.json.Decoder(RunState).decode
_decode_segment = msgspec.json.Decoder(list[TaskNode]).decode
_decode_remembered = msgspec.json.Decoder(dict[str, Remembered]).decode


def put_part(store: ScopedArtifacts, data: bytes) -> ArtifactKey:
    """Store a part, compressed, under the hash of that (blocking). Raises what `ScopedArtifacts.put` raises."""
    return store.put(zstandard.ZstdCompressor(level=1).compress(data))


def read_part(store: ScopedArtifacts, key: ArtifactKey) -> bytes:
    """A part, proven by its hash (blocking). Raises one of `DAMAGED` (`loader.py`), or `StorageFailed`."""
    return zstandard.ZstdDecompressor().decompress(store.get(key.sha256, key.size_bytes))


def encode_head(run: RunState) -> bytes:
    """Everything but the tasks."""
    return _encode(msgspec.structs.replace(run, tasks={}))


def encode_segment(tasks: Sequence[TaskNode]) -> bytes:
    """The tasks of one segment, in their order."""
    return _encode(tasks)


def encode_remembered(remembered: dict[str, Remembered]) -> bytes:
    """The remembered commands of a partition, oldest first."""
    return _encode(remembered)


def decode_remembered(data: bytes) -> dict[str, Remembered]:
    """The same."""
    return _decode_remembered(data)


def decode_run(head: bytes, segments: Iterable[bytes], sharing: Sharing) -> RunState:
    """The run, equal to the one that was encoded, and as small in memory as a folded one."""
    run = _decode_head(head)
    for segment in segments:
        nodes = _decode_segment(segment)
        sharing.adopt_tasks(nodes)
        run.tasks.update((node.id, node) for node in nodes)
    sharing.adopt_head(run)
    return run
