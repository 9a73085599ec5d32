"""A consistent cut of a partition, encoded at once between two batches, and written while deciding goes on."""

from __future__ import annotations

import msgspec
import zstandard

from dagbok.events.rule import Position
from dagbok.projections.artifacts.port import ArtifactKey, ScopedArtifacts
from dagbok.projections.partition import PartitionState
from dagbok.projections.snapshots.fold import fold_name
from dagbok.projections.snapshots.manifest import Manifest, RunParts
from dagbok.projections.snapshots.parts import (
    SEGMENT_TASKS,
    encode_head,
    encode_remembered,
    encode_segment,
)
from dagbok.projections.task_graph.state import RunState


class RunCut(msgspec.Struct, frozen=True):
    """The changed parts of a run: its head, and segments by number."""

    head: bytes
    segments: dict[int, bytes]
    closed_ms: int
    seq: int


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """Everything of the state that the last snapshot does not have."""

    partition: int
    position: Position
    clock_ms: int
    remembered: bytes
    runs: dict[str, RunCut]


def cut(state: PartitionState, changed: dict[str, set[int]]) -> Cut:
    """Encode what changed. Takes milliseconds per thousand changed tasks, and nothing may change meanwhile."""
    return Cut(
        partition=state.partition,
        position=state.position,
        clock_ms=state.clock_ms,
        remembered=encode_remembered(state.remembered),
        runs={stream: _cut_run(state.runs[stream], segments) for stream, segments in changed.items()},
    )


def write_parts(cut: Cut, before: Manifest | None, store: ScopedArtifacts) -> tuple[Manifest, int]:
    """Store the parts (blocking) and return the manifest that names them, with the bytes written. It takes over from
    the snapshot before what did not change."""
    size_bytes = len(cut.remembered)
    runs = {} if before is None else dict(before.runs)
    for stream, run in cut.runs.items():
        known = runs.get(stream)
        segments = {} if known is None else dict(enumerate(known.segments))
        segments |= {number: _put(store, data) for number, data in run.segments.items()}
        ordered = tuple([segments[number] for number in sorted(segments)])
        runs[stream] = RunParts(_put(store, run.head), ordered, run.closed_ms, run.seq)
        size_bytes += len(run.head) + sum([len(data) for data in run.segments.values()])
    manifest = Manifest(
        fold=fold_name(),
        number=0 if before is None else before.number + 1,
        partition=cut.partition,
        position=cut.position,
        clock_ms=cut.clock_ms,
        remembered=_put(store, cut.remembered),
        runs=runs,
    )
    return manifest, size_bytes


def _cut_run(run: RunState, segments: set[int]) -> RunCut:
    nodes = list(run.tasks.values())
    encoded = {
        number: encode_segment(nodes[number * SEGMENT_TASKS : (number + 1) * SEGMENT_TASKS]) for number in segments
    }
    return RunCut(encode_head(run), encoded, run.closed_ms, run.stream_seq)


def _put(store: ScopedArtifacts, data: bytes) -> ArtifactKey:
    return store.put(zstandard.ZstdCompressor(level=1).compress(data))
