"""The journal: one row per event, of every stream. The audit, and what a follower of a run reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

import msgspec

from dagbok.events.body import StoredEvent
from dagbok.events.commit import Commit
from dagbok.events.places import carried
from dagbok.events.run.events import CandidateSubmitted, Event, SessionSuspended
from dagbok.events.run.values import ArtifactItem
from dagbok.projections.tables.rows import Row
from dagbok.projections.tables.session import Session
from dagbok.projections.views.view import Told

REFUSED: Final = "refused:"
"""Begins the key of events that belong to no stream: refusals whose stream is unknown, or foreign to their sender."""

_encode = msgspec.json.Encoder().encode


class JournalRow(Row):
    """An event. (`stream`, `seq`) is its number in its stream, dense from 1; one of no stream has the key
    (`refused:<partition>:<offset>`, 1) and the tenant of its sender. `log_*` is its place in the log.

    `type`, `version` and `data` (JSON) are as recorded, except that bytes of artifacts are left out of `data`: their
    hashes and sizes stay. `actor` and the `command_*` columns tell who caused it.
    """

    table: ClassVar[str] = "journal"
    key: ClassVar[tuple[str, ...]] = ("stream", "seq")

    stream: str
    seq: int
    type: str
    version: int
    task: str | None
    now_ms: int
    actor: str
    command_type: str
    command_id: str
    log_partition: int
    log_offset: int
    log_event: int
    data: str


class JournalView:
    """One row per event, refusals too."""

    name: Final = "journal"
    layout: Final = 1
    rows: Final = (JournalRow,)

    def write(self, session: Session, batch: Sequence[Told]) -> None:
        """Insert the events of the batch."""
        rows: list[JournalRow] = []
        for told in batch:
            _add(rows, told.commit, told.stored, told.events)
        session.insert(rows)


def refused_stream(partition: int, offset: int) -> str:
    """The key of the events of a commit that belongs to no stream."""
    return f"{REFUSED}{partition}:{offset}"


def _add(rows: list[JournalRow], commit: Commit, stored: Sequence[StoredEvent], events: Sequence[Event]) -> None:
    seal, offset = commit.seal, commit.offset
    stream, first = seal.stream, seal.stream_seq
    if stream is None:
        stream, first = refused_stream(seal.partition, offset), 1
    for index, (item, event) in enumerate(zip(stored, events, strict=True)):
        version, data = _data(item, event)
        rows.append(
            JournalRow(
                seal.tenant,
                seal.project,
                stream,
                first + index,
                item.type,
                version,
                getattr(event, "task", None),
                seal.now_ms,
                seal.actor,
                seal.command_type,
                seal.command_id,
                seal.partition,
                offset,
                index,
                data,
            )
        )


def _data(item: StoredEvent, event: Event) -> tuple[int, str]:
    """Version and JSON of an event. Without bytes to leave out they are those of the log."""
    if all(handed.inline is None for handed in carried(event)):
        return item.version, str(item.data, "utf-8")
    if isinstance(event, SessionSuspended):
        event = msgspec.structs.replace(event, part=_without_bytes(event.part))
    elif isinstance(event, CandidateSubmitted):
        event = msgspec.structs.replace(event, artifacts=tuple(map(_without_bytes, event.artifacts)))
    return event.version, _encode(event).decode()


def _without_bytes(item: ArtifactItem) -> ArtifactItem:
    return msgspec.structs.replace(item, inline=None)
