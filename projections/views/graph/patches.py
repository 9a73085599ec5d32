"""Changes to rows that need not be read first: what happens to attempts and artifacts follows from events alone."""

from __future__ import annotations

from typing import ClassVar

import sqlalchemy as sa

from dagbok.projections.tables.rows import Row
from dagbok.projections.tables.statements import Patch, bound
from dagbok.projections.views.graph.rows import ArtifactRow, AttemptRow, AttemptStatus, Outcome, TaskRow


class AttemptPatch(Patch):
    """Base of the changes to one attempt."""

    row: ClassVar[type[Row]] = AttemptRow

    run: str
    task: str
    epoch: int


class Started(AttemptPatch):
    """Claimed."""

    process: str
    started_ms: int

    @classmethod
    def statement(cls, table: sa.Table) -> sa.Update:
        return _attempt(table).values(status="running", process=bound("process"), started_ms=bound("started_ms"))


class Unserved(AttemptPatch):
    """Another process did not know the handler."""

    @classmethod
    def statement(cls, table: sa.Table) -> sa.Update:
        return _attempt(table).values(unserved=table.c.unserved + 1)


class Ended(AttemptPatch):
    """The attempt itself is over. `process`: who claimed it by ending it; none leaves the column as it is."""

    status: AttemptStatus
    process: str | None
    outcome: Outcome | None
    code: str | None
    message: str | None
    closed_ms: int

    @classmethod
    def statement(cls, table: sa.Table) -> sa.Update:
        return _attempt(table).values(
            status=bound("status"),
            process=sa.func.coalesce(bound("process"), table.c.process),
            outcome=bound("outcome"),
            code=bound("code"),
            message=bound("message"),
            closed_ms=bound("closed_ms"),
        )


class Judged(AttemptPatch):
    """What became of what the attempt had submitted."""

    status: AttemptStatus
    code: str | None
    message: str | None

    @classmethod
    def statement(cls, table: sa.Table) -> sa.Update:
        return _attempt(table).values(status=bound("status"), code=bound("code"), message=bound("message"))


class Published(Patch):
    """A verdict passed: the artifacts of the attempt are published."""

    row: ClassVar[type[Row]] = ArtifactRow

    run: str
    task: str
    epoch: int
    published_ms: int

    @classmethod
    def statement(cls, table: sa.Table) -> sa.Update:
        return (
            sa.update(table)
            .where(table.c.run == bound("run"), table.c.task == bound("task"), table.c.epoch == bound("epoch"))
            .values(state="published", published_ms=bound("published_ms"))
        )


class TasksCancelled(Patch):
    """The run is cancelled: every task that is neither verified nor failed is cancelled with it."""

    row: ClassVar[type[Row]] = TaskRow

    run: str
    closed_ms: int

    @classmethod
    def statement(cls, table: sa.Table) -> sa.Update:
        return (
            sa.update(table)
            .where(table.c.run == bound("run"), table.c.status != "verified", table.c.status != "failed")
            .values(
                status="cancelled",
                open_kind=None,
                staged=None,
                staged_epoch=None,
                due_ms=None,
                closed_ms=bound("closed_ms"),
            )
        )


class AttemptsCancelled(Patch):
    """The run is cancelled: what was submitted will not be judged any more."""

    row: ClassVar[type[Row]] = AttemptRow

    run: str

    @classmethod
    def statement(cls, table: sa.Table) -> sa.Update:
        return (
            sa.update(table)
            .where(table.c.run == bound("run"), table.c.status == "submitted")
            .values(status="cancelled", code="run_cancelled")
        )


def _attempt(table: sa.Table) -> sa.Update:
    return sa.update(table).where(
        table.c.run == bound("run"), table.c.task == bound("task"), table.c.epoch == bound("epoch")
    )
