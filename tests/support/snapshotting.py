"""A partition that is folded from a log with snapshots on the way."""

from __future__ import annotations

from pathlib import Path

import msgspec

from dagbok.events.body import decode_body
from dagbok.events.log.port import Log
from dagbok.projections.artifacts.local import local_store
from dagbok.projections.artifacts.scope import SNAPSHOT_CHUNKS
from dagbok.projections.partition import PartitionState, apply
from dagbok.projections.reading import read_effective
from dagbok.projections.snapshots.keeper import SnapshotKeeper
from dagbok.projections.snapshots.slots import FileSlots

NEVER_COLD_MS = 10**15


def keeper_in(folder: Path, log: Log, *, due_bytes: int = 1, cold_after_ms: int = NEVER_COLD_MS) -> SnapshotKeeper:
    """The snapshots in `folder`; by default one is due after every commit."""
    folder.mkdir(exist_ok=True)
    store = local_store(folder).within(SNAPSHOT_CHUNKS)
    return SnapshotKeeper(log, 0, store, FileSlots(folder, 0), due_bytes=due_bytes, cold_after_ms=cold_after_ms)


async def fold(log: Log, keeper: SnapshotKeeper, *, until: int = 10**9, save: bool = True) -> PartitionState:
    """The state at offset `until`, begun from the newest snapshot; with `save`, snapshots are taken on the way."""
    state = await keeper.load()
    while state.position.next_offset < until:
        position, commits = await read_effective(log, 0, state.position, 1)
        if position == state.position:
            break
        for commit in commits:
            seal = commit.seal
            if seal.stream is not None:
                keeper.thaw(state, seal.stream)
            events = decode_body(commit.stored_body, seal.codec, seal.raw_size)
            apply(state, commit, events)
            keeper.note(state, seal.stream, events, len(commit.stored_body))
        state.position = position
        if save:
            keeper.save_if_due(state)
            await keeper.settled()
    return state


def image(state: PartitionState) -> bytes:
    """Everything of a state, to compare: the order of its runs aside, in which nothing is decided."""
    return msgspec.json.encode(msgspec.structs.replace(state, runs=dict(sorted(state.runs.items()))))
