"""What a view is: a fold of commits into the rows of its tables, with a position of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from dagbok.events.body import StoredEvent, decode_event, stored_events
from dagbok.events.commit import Commit, Seal
from dagbok.events.errors import FormatTooNew, LogCorrupt
from dagbok.events.run.events import Event
from dagbok.projections.tables.rows import Row
from dagbok.projections.tables.session import Session


class Told(msgspec.Struct, frozen=True, gc=False):
    """A commit with its events decoded, each beside the form in which it was recorded."""

    commit: Commit
    stored: Sequence[StoredEvent]
    events: Sequence[Event]

    @property
    def seal(self) -> Seal:
        """The seal of the commit."""
        return self.commit.seal


class View(Protocol):
    """A view. Its rows follow from the commits alone: folding them again from the start gives the same."""

    @property
    def name(self) -> str:
        """Its name in `positions` and for a rebuild."""
        ...

    @property
    def layout(self) -> int:
        """Raised when its columns or their meaning change: older tables are then built again."""
        ...

    @property
    def rows(self) -> Sequence[type[Row]]:
        """Its tables."""
        ...

    def write(self, session: Session, batch: Sequence[Told]) -> None:
        """Write what the next commits mean. The caller moves the position in the same transaction."""
        ...


def tell(commits: Sequence[Commit]) -> list[Told]:
    """Decode commits, up to the first that this code does not know.

    Raises `FormatTooNew` when that is the very first, so that a reader takes in all it can and then halts; `LogCorrupt`
    when a body is not what its seal says.
    """
    told: list[Told] = []
    for commit in commits:
        try:
            told.append(_tell(commit))
        except FormatTooNew:
            if not told:
                raise
            break
    return told


def _tell(commit: Commit) -> Told:
    seal = commit.seal
    stored = stored_events(commit.stored_body, seal.codec, seal.raw_size)
    if len(stored) != seal.count:
        raise LogCorrupt(
            f"the commit at {seal.partition}:{commit.offset} has {len(stored)} events, sealed are {seal.count}"
        )
    return Told(commit, stored, [decode_event(item) for item in stored])
