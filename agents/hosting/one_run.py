"""One run out of a partition: folded from the newest snapshot and the log behind it, without the other runs.

Of commits of other streams only the seals are read, which decide whether a commit counts.
"""

from __future__ import annotations

import sys
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from dagbok.agents.hosting.watching import Committed
from dagbok.events.body import decode_body
from dagbok.events.commit import value_hash
from dagbok.events.errors import LogCorrupt, LogLost, StorageFailed
from dagbok.events.log.port import EVENTS, Log, StoredRecord
from dagbok.events.rule import GENESIS, Position, follow
from dagbok.projections.artifacts.port import ScopedArtifacts
from dagbok.projections.partition import PartitionState, apply
from dagbok.projections.snapshots.fold import fold_name
from dagbok.projections.snapshots.index import read_chunk
from dagbok.projections.snapshots.loader import DAMAGED, load_run
from dagbok.projections.snapshots.manifest import Manifest, RunParts, Slots, decode_manifest
from dagbok.projections.snapshots.sharing import Sharing

logger = structlog.get_logger(__name__)

UNREAD: Final = (*DAMAGED, StorageFailed)
"""Whoever only reads goes on without a snapshot, for whatever reason it has none: the log has everything."""

STEP: Final = 1_000
LARGE_BYTES: Final = 1024 * 1024
"""A read that gave less, and fewer than `STEP`, has come to the end."""


@dataclass(frozen=True)
class Source:
    """Where the runs of one partition can be read: the log, and the manifests (`slots`) and parts of its snapshots.

    `log_refuses` as in `Recovery`: on such a log no record is void and none is missing between others, else it was
    altered or has lost some.
    """

    log: Log
    partition: int
    slots: Slots
    parts: ScopedArtifacts
    log_refuses: bool


def fold_run(source: Source, stream: str) -> PartitionState:
    """A state that holds this run alone, or none, at the end of the log. Blocks; any thread.

    Raises what reading the log and the manifests raises.
    """
    state = _base(source, stream)
    while True:
        records = read_step(source, state.position)
        fold(source, state, records, {stream})
        if not may_be_more(records):
            return state


def position_before(source: Source, stream: str, after: int) -> Position:
    """A position that every event of the run with a number above `after` lies behind. Blocks; any thread."""
    for manifest in _manifests(source):
        try:
            parts = _parts(source, manifest, stream)
        except UNREAD as error:
            logger.info("snapshot.not_read", number=manifest.number, error=str(error))
            continue
        if parts is None or parts.seq <= after:
            return manifest.position
    return GENESIS


def read_step(source: Source, position: Position) -> Sequence[StoredRecord]:
    """What follows on `position`, up to `STEP` records. Blocks; any thread."""
    return source.log.read_now(EVENTS, source.partition, position.next_offset, STEP)


def may_be_more(records: Sequence[StoredRecord]) -> bool:
    """Whether a read gave as much as one may: there is perhaps more behind it."""
    return len(records) >= STEP or sum([len(record.value) for record in records]) >= LARGE_BYTES


def fold(
    source: Source,
    state: PartitionState,
    records: Sequence[StoredRecord],
    streams: Container[str],
    found: list[Committed] | None = None,
    *,
    until: int = sys.maxsize,
) -> None:
    """Fold those of `records` that are behind `state` and below the offset `until`, of `streams` alone. The commits
    that were folded are added to `found`.

    Raises `LogLost` when records that the state needs are missing before these, and `LogCorrupt` when one is void on a
    log that refuses.
    """
    for record in records:
        offset = record.offset
        if offset < state.position.next_offset:
            continue  # another read has brought it meanwhile
        if offset >= until:
            return
        if offset > state.position.next_offset:
            _check_gap(source, state.position.next_offset)
        position, commit = follow(state.position, source.partition, offset, record.value)
        if commit is None and source.log_refuses:
            raise LogCorrupt(
                f"events[{source.partition}] was altered: the record at {offset} does not follow on those before"
            )
        if commit is not None and commit.seal.stream in streams:
            seal = commit.seal
            events = decode_body(commit.stored_body, seal.codec, seal.raw_size)
            apply(state, commit, events)
            state.remembered.clear()  # whoever only looks refuses nothing
            if found is not None:
                found.append(Committed(seal, offset, events))
        state.position = position


def _check_gap(source: Source, offset: int) -> None:
    """Nothing is at `offset`, where there is something behind it. Where offsets need not be dense, that is only wrong
    when the log begins later by now."""
    if not source.log_refuses:
        oldest = source.log.read_now(EVENTS, source.partition, 0, 1)
        if oldest and oldest[0].offset <= offset:
            return
    raise LogLost(f"events[{source.partition}] has no record at offset {offset}")


def _base(source: Source, stream: str) -> PartitionState:
    """The run as the newest snapshot has it; without one that can be read, the start of the log."""
    for manifest in _manifests(source):
        state = PartitionState(source.partition, manifest.position, manifest.clock_ms)
        try:
            parts = _parts(source, manifest, stream)
            if parts is not None:
                state.runs[stream] = load_run(parts, source.parts, Sharing())
        except UNREAD as error:
            # Its owner may have replaced it meanwhile.
            logger.info("snapshot.not_read", number=manifest.number, error=str(error))
        else:
            return state
    return PartitionState(source.partition)


def _parts(source: Source, manifest: Manifest, stream: str) -> RunParts | None:
    """The parts of a run in a snapshot; none when there was no such run."""
    return next((runs[stream] for runs in _lists(source, manifest) if stream in runs), None)


def _lists(source: Source, manifest: Manifest) -> Iterator[dict[str, RunParts]]:
    yield manifest.runs
    for chunk in reversed(manifest.closed):
        yield read_chunk(source.parts, chunk.key)


def _manifests(source: Source) -> list[Manifest]:
    found = [manifest for data in source.slots.read() if (manifest := decode_manifest(data)) is not None]
    fits = [manifest for manifest in found if _fits(source, manifest)]
    return sorted(fits, key=lambda manifest: manifest.number, reverse=True)


def _fits(source: Source, manifest: Manifest) -> bool:
    """Behind the position of another log every record would be void."""
    if (manifest.fold, manifest.partition) != (fold_name(), source.partition):
        return False
    position = manifest.position
    if position.head_offset < 0:
        return True
    try:
        value = source.log.value_at(EVENTS, source.partition, position.head_offset)
    except LogLost:
        return False
    return value_hash(value) == position.head_hash
