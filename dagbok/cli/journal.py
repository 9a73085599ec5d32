"""Events of a run, as the tables have them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import msgspec

from dagbok.cli.reading import Reading
from dagbok.events.run.event import Event
from dagbok.projections.views.graph.rows import RunRow

E = TypeVar("E", bound=Event)


def events_of(found: Reading, run: RunRow, type: type[E], task: str | None = None) -> Iterator[E]:
    """Those of one type in their order, of one task or of all."""
    after, types = 0, (type.__name__,)
    while rows := found.queries.journal(found.tenant, found.project, run.run, after_seq=after, types=types):
        after = rows[-1].seq
        yield from (msgspec.json.decode(row.data, type=type) for row in rows if task in (None, row.task))
