"""What the tables answer. Every query names tenant and project, and sees nothing of others.

Rows are as the views write them (`projections/views/`). Queries block; call them in a thread from a loop. All may raise
`StorageFailed`, and `FormatTooNew` when a newer dagbok has built the tables. Whatever is asked for has an answer:
behind a number that no row can have there is nothing, and a text that is no Unicode names nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec
import sqlalchemy as sa

from dagbok.events.rule import GENESIS, Position
from dagbok.projections.store import Tables
from dagbok.projections.tables import positions
from dagbok.projections.tables.rows import GREATEST, Row
from dagbok.projections.tables.session import Columns
from dagbok.projections.task_graph.state import RunStatus, TaskStatus
from dagbok.projections.views.graph.rows import ArtifactRow, ArtifactState, AttemptRow, EdgeRow, RunRow, TaskRow
from dagbok.projections.views.journal import REFUSED, JournalRow
from dagbok.projections.views.reports import ReportRow

R = TypeVar("R", bound=Row)
Condition = sa.ColumnElement[bool]


class TaskTree(msgspec.Struct):
    """A task with the tasks that its decompositions made, in the order in which they came."""

    task: TaskRow
    children: list[TaskTree]


class Queries:
    """Queries on tables. May be used from any thread."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def list_runs(
        self,
        tenant: str,
        project: str | None,
        *,
        limit: int = 50,
        status: RunStatus | None = None,
        behind: tuple[int, str] | None = None,
    ) -> list[RunRow]:
        """The newest `limit` runs of a project, or of all projects of the tenant, the newest first; those of one moment
        by id. `behind`: begin behind the run that began then (milliseconds) and has this id."""
        if not _is_unicode(tenant, project or "", behind[1] if behind is not None else ""):
            return []
        with self._tables.reading() as connection:
            session = self._tables.live(connection, self._tables.view_of(RunRow))
            columns = session.columns(RunRow)
            where = [columns["tenant"] == tenant]
            where += [] if project is None else [columns["project"] == project]
            where += [] if status is None else [columns["status"] == status]
            if behind is not None:
                started_ms, run = max(-GREATEST, min(behind[0], GREATEST)), behind[1]
                same = sa.and_(columns["started_ms"] == started_ms, columns["run"] > run)
                where.append(sa.or_(columns["started_ms"] < started_ms, same))
            statement = sa.select(session.tables.table(RunRow)).where(*where)
            order = (columns["started_ms"].desc(), columns["run"])
            return session.fetch(RunRow, statement.order_by(*order).limit(_rows(limit)))

    def projects_with_runs(self, *, limit: int = 10) -> list[tuple[str, str]]:
        """Tenants and projects that have runs, whoever they are. For the operator of the tables, who may read all of
        them anyway; nothing that answers a tenant calls this."""
        with self._tables.reading() as connection:
            session = self._tables.live(connection, self._tables.view_of(RunRow))
            columns = session.columns(RunRow)
            places = sa.select(columns["tenant"], columns["project"]).distinct()
            found = connection.execute(places.order_by(columns["tenant"], columns["project"]).limit(_rows(limit)))
            return [(str(tenant), str(project)) for tenant, project in found]

    def get_run(self, tenant: str, project: str, run: str) -> RunRow | None:
        """A run; None when this tenant and project have none of this id."""
        return next(iter(self._select(RunRow, tenant, project, {"run": run})), None)

    def list_tasks(
        self,
        tenant: str,
        project: str,
        run: str,
        *,
        status: TaskStatus | None = None,
        after: int = -1,
        limit: int | None = None,
    ) -> list[TaskRow]:
        """The tasks of a run in the order in which they came, those with a `number` above `after`."""
        return self._select(
            TaskRow,
            tenant,
            project,
            {"run": run, "status": status},
            order=("number",),
            limit=limit,
            above=("number", after),
        )

    def get_task(self, tenant: str, project: str, run: str, task: str) -> TaskRow | None:
        """A task; None when there is none."""
        return next(iter(self._select(TaskRow, tenant, project, {"run": run, "task": task})), None)

    def task_tree(self, tenant: str, project: str, run: str) -> list[TaskTree]:
        """The tasks that the run started with, each with those that came of it."""
        trees: dict[str, TaskTree] = {}
        first: list[TaskTree] = []
        for row in self.list_tasks(tenant, project, run):
            tree = trees[row.task] = TaskTree(row, [])
            if row.parent is None:
                first.append(tree)
            elif row.parent in trees:
                trees[row.parent].children.append(tree)
            else:
                raise self._tables.damaged(f"task {row.task} came of {row.parent}, which is not there")
        return first

    def pools(self, tenant: str, project: str, run: str, statuses: Sequence[TaskStatus] | None = None) -> list[str]:
        """The pools of the tasks of a run, or of those with one of these statuses, in order."""
        if not _is_unicode(tenant, project, run):
            return []
        with self._tables.reading() as connection:
            session = self._tables.live(connection, self._tables.view_of(TaskRow))
            columns = session.columns(TaskRow)
            where = [*_mine(columns, tenant, project), columns["run"] == run]
            where += [] if statuses is None else [columns["status"].in_(statuses)]
            found = connection.execute(sa.select(columns["pool"]).distinct().where(*where).order_by(columns["pool"]))
            return [str(pool) for (pool,) in found]

    def edges(
        self, tenant: str, project: str, run: str, task: str | None = None, *, conditional: bool = False
    ) -> list[EdgeRow]:
        """Which task waits for which; `conditional`: only where that has a condition."""
        equal = {"run": run, "task": task}
        said = ("condition",) if conditional else ()
        return self._select(EdgeRow, tenant, project, equal, order=("task", "dependency"), said=said)

    def attempts(self, tenant: str, project: str, run: str, task: str | None = None) -> list[AttemptRow]:
        """The attempts of a run or task, by task and epoch."""
        return self._select(AttemptRow, tenant, project, {"run": run, "task": task}, order=("task", "epoch"))

    def reports(self, tenant: str, project: str, run: str, task: str | None = None) -> list[ReportRow]:
        """The verdicts on a run or task, by task and epoch."""
        return self._select(ReportRow, tenant, project, {"run": run, "task": task}, order=("task", "epoch"))

    def artifacts(
        self,
        tenant: str,
        project: str,
        run: str,
        task: str | None = None,
        name: str | None = None,
        *,
        state: ArtifactState | None = None,
    ) -> list[ArtifactRow]:
        """The artifacts of a run or task, by task, epoch and place."""
        equal = {"run": run, "task": task, "name": name, "state": state}
        return self._select(ArtifactRow, tenant, project, equal, order=("task", "epoch", "item"))

    def journal(
        self,
        tenant: str,
        project: str,
        run: str,
        *,
        after_seq: int = 0,
        limit: int = 1_000,
        types: Sequence[str] | None = None,
    ) -> list[JournalRow]:
        """The events of a run from number `after_seq` + 1 on, at most `limit`; `types` chooses among them."""
        return self._select(
            JournalRow,
            tenant,
            project,
            {"stream": "run:" + run},
            order=("seq",),
            limit=limit,
            above=("seq", after_seq),
            types=types,
        )

    def refusals(self, tenant: str, project: str, *, limit: int = 100) -> list[JournalRow]:
        """The newest commands that were refused or repeated without belonging to a run, the newest first."""
        if not _is_unicode(tenant, project):
            return []
        with self._tables.reading() as connection:
            session = self._tables.live(connection, "journal")
            columns = session.columns(JournalRow)
            statement = (
                sa.select(session.tables.table(JournalRow))
                .where(*_mine(columns, tenant, project), columns["stream"].startswith(REFUSED))
                .order_by(columns["now_ms"].desc(), columns["log_offset"].desc())
                .limit(_rows(limit))
            )
            return session.fetch(JournalRow, statement)

    def position(self, partition: int = 0) -> Position:
        """What all views have taken in: every query sees the commits below its `next_offset`."""
        with self._tables.reading() as connection:
            return min(
                [
                    positions.read_position(connection, name, self._tables.live_version(connection, name), partition)
                    or GENESIS
                    for name in self._tables.views
                ],
                key=lambda position: position.next_offset,
            )

    def void_records(self) -> int:
        """How many records of the log are void: written by a process that did not know of the commits before."""
        with self._tables.reading() as connection:
            return max(
                positions.void_records(connection, name, self._tables.live_version(connection, name))
                for name in self._tables.views
            )

    def _select(
        self,
        row: type[R],
        tenant: str,
        project: str,
        equal: dict[str, str | None],
        *,
        order: Sequence[str] = (),
        limit: int | None = None,
        above: tuple[str, int] | None = None,
        types: Sequence[str] | None = None,
        said: Sequence[str] = (),
    ) -> list[R]:
        if not _is_unicode(tenant, project, *[text for text in equal.values() if text is not None], *(types or ())):
            return []
        with self._tables.reading() as connection:
            session = self._tables.live(connection, self._tables.view_of(row))
            columns = session.columns(row)
            where = _mine(columns, tenant, project)
            where += [columns[name] == value for name, value in equal.items() if value is not None]
            where += [columns[name].is_not(None) for name in said]
            if above is not None:
                where.append(columns[above[0]] > max(-1, min(above[1], GREATEST)))
            if types is not None:
                where.append(columns["type"].in_(types))
            by = [columns[name] for name in order]
            statement = sa.select(session.tables.table(row)).where(*where).order_by(*by)
            return session.fetch(row, statement if limit is None else statement.limit(_rows(limit)))


def _rows(limit: int) -> int:
    """As many rows as a database can count to; fewer than none are none."""
    return max(0, min(limit, GREATEST))


def _is_unicode(*texts: str) -> bool:
    """False for what no row can have: half characters, as arguments of a program have that are no UTF-8. None has a NUL
    either, which some databases refuse."""
    try:
        return b"\0" not in "".join(texts).encode()
    except UnicodeEncodeError:
        return False


def _mine(columns: Columns, tenant: str, project: str) -> list[Condition]:
    return [columns["tenant"] == tenant, columns["project"] == project]
