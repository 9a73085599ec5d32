"""Lists of runs and their events, as `Dagbok.list_runs` and `Dagbok.events` give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from dagbok.events.arguments import text
from dagbok.events.codes import Code
from dagbok.events.commit import Seal
from dagbok.events.errors import InvalidInput
from dagbok.events.run.events import CandidateSubmitted, Event
from dagbok.projections.task_graph.state import RunStatus
from dagbok.projections.views.graph.rows import RunRow
from dagbok.projections.views.journal import JournalRow

MAX_DIGITS: Final = 15
"""Of a time in a cursor."""


@dataclass(frozen=True)
class RunSummary:
    """A run in a list. `counts`: its tasks per status; `code` and `reason`: why it is blocked, failed, paused or
    cancelled. Times are milliseconds since 1970."""

    run: str
    tenant: str
    project: str
    user: str
    status: RunStatus
    tasks: int
    counts: Mapping[str, int]
    started_ms: int
    closed_ms: int | None
    code: str | None
    reason: str | None


@dataclass(frozen=True)
class RunPage:
    """Some runs, the newest first. `cursor` gets the next page; none: there are no more."""

    runs: Sequence[RunSummary]
    cursor: str | None


@dataclass(frozen=True)
class RunEvent:
    """A fact about a run. `seq` numbers the events of a run from 1 without a gap; `at` is its place in the log
    (partition, offset, index); `actor` and `command` (type and id) say who caused it. `data` is JSON as recorded,
    without the bytes of artifacts."""

    run: str
    seq: int
    type: str
    version: int
    task: str | None
    at_ms: int
    actor: str
    command: tuple[str, str]
    at: tuple[int, int, int]
    data: Mapping[str, Any]


def summary_of(row: RunRow) -> RunSummary:
    """A row of the tables as a summary."""
    counts: dict[str, int] = {status: count for status, count in row.counts.items() if count}
    return RunSummary(
        run=row.run,
        tenant=row.tenant,
        project=row.project,
        user=row.user,
        status=row.status,
        tasks=row.tasks,
        counts=counts,
        started_ms=row.started_ms,
        closed_ms=row.closed_ms,
        code=row.code,
        reason=row.reason,
    )


def cursor_of(row: RunRow) -> str:
    """What the next page begins behind."""
    return f"{row.started_ms}.{row.run}"


def read_cursor(cursor: str) -> tuple[int, str]:
    """When the last run of the page before began, and its id. Raises `InvalidInput` (`usage`)."""
    started_ms, dot, run = text("cursor", cursor).partition(".")
    whole = started_ms.isascii() and started_ms.isdecimal() and len(started_ms) <= MAX_DIGITS
    if not (dot and whole and run):
        raise InvalidInput(f"{cursor[:140]!r} is no cursor", code=Code.USAGE, advice="use the one of the last page")
    return int(started_ms), run


def event_of_row(run: str, row: JournalRow) -> RunEvent:
    """A row of the journal as an event."""
    return RunEvent(
        run=run,
        seq=row.seq,
        type=row.type,
        version=row.version,
        task=row.task,
        at_ms=row.now_ms,
        actor=row.actor,
        command=(row.command_type, row.command_id),
        at=(row.log_partition, row.log_offset, row.log_event),
        data=msgspec.json.decode(row.data),
    )


def events_of_commit(run: str, seal: Seal, offset: int, events: Sequence[Event]) -> list[RunEvent]:
    """The events of a commit."""
    return [
        RunEvent(
            run=run,
            seq=seal.stream_seq + index,
            type=type(event).__name__,
            version=event.version,
            task=getattr(event, "task", None),
            at_ms=seal.now_ms,
            actor=seal.actor,
            command=(seal.command_type, seal.command_id),
            at=(seal.partition, offset, index),
            data=msgspec.json.decode(msgspec.json.encode(_without_bytes(event))),
        )
        for index, event in enumerate(events)
    ]


def _without_bytes(event: Event) -> Event:
    if not isinstance(event, CandidateSubmitted):
        return event
    artifacts = tuple([msgspec.structs.replace(artifact, inline=None) for artifact in event.artifacts])
    return msgspec.structs.replace(event, artifacts=artifacts)
