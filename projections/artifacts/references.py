"""Every stored artifact that the log refers to: the roots of the collection of orphans (`orphans.py`)."""

from __future__ import annotations

from dagbok.events.body import decode_body
from dagbok.events.log.port import Log
from dagbok.events.places import carried
from dagbok.events.rule import GENESIS
from dagbok.projections.artifacts.orphans import Reference
from dagbok.projections.artifacts.scope import Scope
from dagbok.projections.reading import read_effective

READ_COMMITS = 1_000


async def stored_references(log: Log, partition: int) -> set[Reference]:
    """What the effective commits of a partition name as stored, staged and published alike. Reads the log from its
    start: nothing derived is trusted with what may be deleted."""
    position, found = GENESIS, set[Reference]()
    while True:
        behind, commits = await read_effective(log, partition, position, READ_COMMITS)
        for commit in commits:
            seal = commit.seal
            scope = Scope(seal.tenant, seal.project)
            for event in decode_body(commit.stored_body, seal.codec, seal.raw_size):
                found.update((scope, item.sha256) for item in carried(event) if item.inline is None)
        if behind == position:
            return found
        position = behind
