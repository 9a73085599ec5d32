"""Every stored artifact that the log refers to: the roots of the collection of orphans (`orphans.py`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dagbok.events.body import decode_body
from dagbok.events.log.port import Log
from dagbok.events.places import carried
from dagbok.events.rule import GENESIS
from dagbok.events.run.events import DecompositionProposed, Event, TasksAdded
from dagbok.events.run.values import Spec
from dagbok.projections.artifacts.orphans import Reference
from dagbok.projections.artifacts.scope import Scope
from dagbok.projections.reading import read_effective

READ_COMMITS = 1_000


def _stored(event: Event) -> Iterator[str]:
    for item in carried(event):
        if item.inline is None:
            yield item.sha256
    for spec in _specs(event):
        if spec.session is not None:
            yield spec.session.sha256


def _specs(event: Event) -> Iterable[Spec]:
    if isinstance(event, TasksAdded):
        return [entry.spec for entry in event.tasks]
    return event.proposal.tasks if isinstance(event, DecompositionProposed) else ()


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
                found.update((scope, sha256) for sha256 in _stored(event))
        if behind == position:
            return found
        position = behind
