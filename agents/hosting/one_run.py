"""One run out of a partition: folded from the newest snapshot and the log behind it, without the other runs.

Of commits of other streams only the seals are read, which decide whether a commit counts.
"""

from __future__ import annotations

import sys
from collections.abc import Container
from typing import Final

import structlog

from dagbok.agents.hosting.folder import PARTITION, DataFolder
from dagbok.agents.hosting.snapshots import parts_of, slots_of
from dagbok.agents.hosting.watching import Committed
from dagbok.events.body import decode_body
from dagbok.events.commit import value_hash
from dagbok.events.errors import LogCorrupt, LogLost
from dagbok.events.log.port import EVENTS, Log
from dagbok.events.rule import follow
from dagbok.projections.partition import PartitionState, apply
from dagbok.projections.snapshots.fold import fold_name
from dagbok.projections.snapshots.loader import UNREADABLE, load_run
from dagbok.projections.snapshots.manifest import Manifest, decode_manifest
from dagbok.projections.snapshots.sharing import Sharing

logger = structlog.get_logger(__name__)

STEP: Final = 1_000


def fold_run(folder: DataFolder, log: Log, stream: str) -> PartitionState:
    """A state that holds this run alone, or none, at the end of the log. Blocks; any thread.

    Raises what reading the log raises.
    """
    state = _base(folder, log, stream)
    while step(log, state, {stream}) == STEP:
        pass
    return state


def step(
    log: Log,
    state: PartitionState,
    streams: Container[str],
    found: list[Committed] | None = None,
    *,
    until: int = sys.maxsize,
) -> int:
    """Fold up to `STEP` records behind `state` and below the offset `until`, those of `streams` alone; how many there
    were. The commits that were folded are added to `found`. Blocks; any thread.

    Raises `LogCorrupt` when a record does not follow on those before it: this log refuses misplaced appends, so it was
    altered.
    """
    for number in range(STEP):
        offset = state.position.next_offset
        if offset >= until:
            return number
        try:
            value = log.value_at(EVENTS, PARTITION, offset)
        except LogLost:
            return number
        position, commit = follow(state.position, PARTITION, offset, value)
        if commit is None:
            raise LogCorrupt(f"events[{PARTITION}] was altered: the record at {offset} does not follow on those before")
        seal = commit.seal
        if seal.stream in streams:
            events = decode_body(commit.stored_body, seal.codec, seal.raw_size)
            apply(state, commit, events)
            state.remembered.clear()  # whoever only looks refuses nothing
            if found is not None:
                found.append(Committed(seal, offset, events))
        state.position = position
    return STEP


def _base(folder: DataFolder, log: Log, stream: str) -> PartitionState:
    """The run as the newest snapshot has it; without one that can be read, the start of the log."""
    for manifest in _manifests(folder, log):
        state = PartitionState(PARTITION, manifest.position, manifest.clock_ms)
        parts = manifest.runs.get(stream)
        try:
            if parts is not None:
                state.runs[stream] = load_run(parts, parts_of(folder), Sharing())
        except UNREADABLE as error:
            # Its owner may have replaced it meanwhile.
            logger.info("snapshot.not_read", number=manifest.number, error=str(error))
        else:
            return state
    return PartitionState(PARTITION)


def _manifests(folder: DataFolder, log: Log) -> list[Manifest]:
    found = [manifest for data in slots_of(folder).read() if (manifest := decode_manifest(data)) is not None]
    fits = [manifest for manifest in found if manifest.fold == fold_name() and _is_of(log, manifest)]
    return sorted(fits, key=lambda manifest: manifest.number, reverse=True)


def _is_of(log: Log, manifest: Manifest) -> bool:
    """Behind the position of another log every record would be void."""
    position = manifest.position
    if position.head_offset < 0:
        return True
    try:
        return value_hash(log.value_at(EVENTS, PARTITION, position.head_offset)) == position.head_hash
    except LogLost:
        return False
