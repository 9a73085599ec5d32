"""Changes to rows that need not be read first: what happens to attempts, artifacts and edges follows from events alone.
And changes to the columns of tasks that few tasks ever change."""

from __future__ import annotations

from typing import ClassVar

import sqlalchemy as sa

from dagbok.projections.tables.rows import Row
from dagbok.projections.tables.statements import Patch, bound
from dagbok.projections.task_graph.state import FINAL_TASK
from dagbok.projections.views.graph.rows import (
    ArtifactRow,
    AttemptRow,
    AttemptStatus,
    EdgeRow,
    EdgeState,
    Outcome,
    TaskRow,
)


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


class Charged(AttemptPatch):
    """What the attempt has used, if it has."""

    tokens_used: int
    cost_used: str

    @classmethod
    def statement(cls, table: sa.Table) -> sa.Update:
        return _attempt(table).values(tokens_used=bound("tokens_used"), cost_used=bound("cost_used"))


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


class Spent(Patch):
    """What attempts at the task have used, and what its present one may use."""

    row: ClassVar[type[Row]] = TaskRow

    run: str
    task: str
    tokens_used: int
    cost_used: str
    tokens_reserved: int
    cost_reserved: str

    @classmethod
    def statement(cls, table: sa.Table) -> sa.Update:
        changed = ("tokens_used", "cost_used", "tokens_reserved", "cost_reserved")
        return _task(table).values({name: bound(name) for name in changed})


class Replaced(Patch):
    """Another task took the place of this one, or it is the other one."""

    row: ClassVar[type[Row]] = TaskRow

    run: str
    task: str
    root: bool
    superseded_by: str | None

    @classmethod
    def statement(cls, table: sa.Table) -> sa.Update:
        return _task(table).values(root=bound("root"), superseded_by=bound("superseded_by"))


class Rewired(Patch):
    """All edges to `old` lead to `new`."""

    row: ClassVar[type[Row]] = EdgeRow

    run: str
    old: str
    new: str

    @classmethod
    def statement(cls, table: sa.Table) -> sa.Update:
        return (
            sa.update(table)
            .where(table.c.run == bound("run"), table.c.dependency == bound("old"))
            .values(dependency=bound("new"))
        )


class Settled(Patch):
    """An edge is taken, or not."""

    row: ClassVar[type[Row]] = EdgeRow

    run: str
    task: str
    dependency: str
    state: EdgeState

    @classmethod
    def statement(cls, table: sa.Table) -> sa.Update:
        keys = ("run", "task", "dependency")
        return sa.update(table).where(*[table.c[key] == bound(key) for key in keys]).values(state=bound("state"))


class TasksCancelled(Patch):
    """The run is cancelled: every task that is not at its end, and has not failed, is cancelled with it."""

    row: ClassVar[type[Row]] = TaskRow

    run: str
    closed_ms: int

    @classmethod
    def statement(cls, table: sa.Table) -> sa.Update:
        return (
            sa.update(table)
            .where(
                table.c.run == bound("run"), *[table.c.status != status for status in ("failed", *sorted(FINAL_TASK))]
            )
            .values(
                status="cancelled",
                code="run_cancelled",
                reason=None,
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


def _task(table: sa.Table) -> sa.Update:
    return sa.update(table).where(table.c.run == bound("run"), table.c.task == bound("task"))


def _attempt(table: sa.Table) -> sa.Update:
    return sa.update(table).where(
        table.c.run == bound("run"), table.c.task == bound("task"), table.c.epoch == bound("epoch")
    )
