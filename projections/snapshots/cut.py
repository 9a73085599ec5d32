"""A consistent cut of a partition, encoded at once between two batches, and written while deciding goes on."""

from __future__ import annotations

import msgspec

from dagbok.events.rule import Position
from dagbok.projections.artifacts.port import ScopedArtifacts
from dagbok.projections.partition import PartitionState
from dagbok.projections.snapshots.ahead import Encoded
from dagbok.projections.snapshots.fold import fold_name
from dagbok.projections.snapshots.index import Listed, Listing
from dagbok.projections.snapshots.manifest import Manifest, RunParts
from dagbok.projections.snapshots.parts import (
    SEGMENT_TASKS,
    encode_head,
    encode_remembered,
    encode_segment,
    put_part,
)
from dagbok.projections.task_graph.state import RunState


class RunCut(msgspec.Struct, frozen=True):
    """The changed parts of a run: its head, and segments by number, out of `segment_count`."""

    head: bytes
    segments: dict[int, bytes]
    segment_count: int
    closed_ms: int
    seq: int


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """Everything of the state that the last snapshot does not have."""

    partition: int
    position: Position
    clock_ms: int
    remembered: bytes
    runs: dict[str, RunCut]


def cut(state: PartitionState, changed: dict[str, set[int]], ahead: Encoded) -> Cut:
    """Encode what changed and was not encoded `ahead`. Takes milliseconds per thousand changed tasks, and nothing may
    change meanwhile."""
    return Cut(
        partition=state.partition,
        position=state.position,
        clock_ms=state.clock_ms,
        remembered=encode_remembered(state.remembered),
        runs={
            stream: _cut_run(state.runs[stream], segments, ahead.get(stream, {}))
            for stream, segments in changed.items()
        },
    )


class Written(msgspec.Struct, frozen=True):
    """A manifest whose parts are all stored, the bytes that were written, and what is listed in new chunks."""

    manifest: Manifest
    size_bytes: int
    moved: dict[str, Listed]


def write_parts(cut: Cut, before: Manifest | None, listing: Listing, store: ScopedArtifacts) -> Written:
    """Store the parts (blocking). The manifest takes over from the snapshot before what did not change."""
    size_bytes = len(cut.remembered)
    runs = {} if before is None else dict(before.runs)
    chunks, moved = listing.chunks(() if before is None else before.closed, cut.runs, store)
    for stream in moved:
        runs.pop(stream, None)
    for stream, run in cut.runs.items():
        known = listing.known(stream, runs)
        segments = {} if known is None else dict(enumerate(known.segments))
        segments |= {number: put_part(store, data) for number, data in run.segments.items()}
        if segments.keys() != set(range(run.segment_count)):
            raise LookupError(f"the snapshot before does not have all that is unchanged of {stream}")
        ordered = tuple([segments[number] for number in sorted(segments)])
        runs[stream] = RunParts(put_part(store, run.head), ordered, run.closed_ms, run.seq)
        size_bytes += len(run.head) + sum([len(data) for data in run.segments.values()])
    manifest = Manifest(
        fold=fold_name(),
        number=0 if before is None else before.number + 1,
        partition=cut.partition,
        position=cut.position,
        clock_ms=cut.clock_ms,
        remembered=put_part(store, cut.remembered),
        runs=runs,
        closed=chunks,
    )
    return Written(manifest, size_bytes, moved)


def _cut_run(run: RunState, segments: set[int], ahead: dict[int, bytes]) -> RunCut:
    nodes = list(run.tasks.values())
    encoded = ahead | {
        number: encode_segment(nodes[number * SEGMENT_TASKS : (number + 1) * SEGMENT_TASKS]) for number in segments
    }
    return RunCut(encode_head(run), encoded, -(-len(nodes) // SEGMENT_TASKS), run.closed_ms, run.stream_seq)
