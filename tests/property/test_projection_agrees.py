"""The tables say what the fold knows: on every history, at every batch size, row by row."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TypeVar, get_args

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from dagbok.events.commit import split_value
from dagbok.events.run.events import EVENTS, CloseCause
from dagbok.events.run.values import ArtifactRef, Usage
from dagbok.projections.partition import PartitionState
from dagbok.projections.tables.rows import Row
from dagbok.projections.task_graph.state import FINAL_TASK, RunState, TaskNode
from dagbok.projections.views.graph.rows import STATUSES, ArtifactRow, AttemptRow, EdgeRow, RunRow, TaskRow
from dagbok.projections.views.journal import REFUSED, JournalRow
from dagbok.projections.views.reports import ReportRow
from tests.support.histories import random_history
from tests.support.logbuilder import LogBuilder
from tests.support.projecting import Rows, project
from tests.support.scale import scale

R = TypeVar("R", bound=Row)

CANCELLED_BY: Final = {"task_cancelled", "parent_cancelled", "parent_superseded", "run_cancelled"}
CLOSED_BY: Final = set(get_args(CloseCause))



def history_with_loss(seed: int, steps: int) -> LogBuilder:
    """A random history; every third loses commands before its last ones."""
    history = random_history(seed, steps)
    if seed % 3 == 0:
        history.lose(1 + seed % 2)
        history.deliver(b"no command")
    return history


histories = st.builds(history_with_loss, st.integers(0, 2**32), st.integers(0, 150))
batches = st.sampled_from((1, 2, 7, 40, 2_000))
examples = settings(max_examples=scale(25, 2_000), deadline=None)


@examples
@given(histories, batches)
def test_the_tables_agree_with_the_fold(history: LogBuilder, batch: int) -> None:
    rows = _project(history, batch)
    state = history.state
    _agree_on_runs(state, _of(rows, RunRow))
    _agree_on_tasks(state, _of(rows, TaskRow))
    _agree_on_edges(state, _of(rows, EdgeRow))
    _agree_on_attempts(state, _of(rows, AttemptRow))
    _agree_on_artifacts(state, _of(rows, ArtifactRow))
    _agree_on_sums(rows)


def test_the_histories_have_every_event_status_and_cause() -> None:
    """Else the comparisons above would say less than they seem to."""
    rows = [_project(history_with_loss(seed, 150), 2_000) for seed in range(30)]
    assert {row.type for one in rows for row in _of(one, JournalRow)} == set(EVENTS)
    assert {row.status for one in rows for row in _of(one, TaskRow)} == set(STATUSES)
    assert {row.state for one in rows for row in _of(one, EdgeRow) if row.condition} == {"open", "taken", "not_taken"}
    assert {row.code for one in rows for row in _of(one, TaskRow) if row.status == "cancelled"} == CANCELLED_BY
    assert {row.code for one in rows for row in _of(one, AttemptRow) if row.status == "cancelled"} == CLOSED_BY
    blocks = {
        msgspec.json.decode(row.data)["code"]
        for one in rows
        for row in _of(one, JournalRow)
        if row.type == "RunBlocked"
    }
    assert blocks >= {"budget_exhausted", "context_overflow", "worker_blocked"}


@examples
@given(histories, batches, batches)
def test_how_the_log_is_cut_into_batches_does_not_matter(history: LogBuilder, one: int, other: int) -> None:
    assert _project(history, one) == _project(history, other)


@examples
@given(histories)
def test_the_journal_has_every_event_once(history: LogBuilder) -> None:
    rows = _project(history, 40)
    journal = _of(rows, JournalRow)
    assert len(journal) == sum(parts[0].count for record in history.records if (parts := split_value(record.value))) - (
        _void_events(history)
    )
    for run in history.state.runs.values():
        assert [row.seq for row in journal if row.stream == run.stream] == list(range(1, run.stream_seq + 1))
    assert {row.stream.split(":")[0] for row in journal} <= {"run", REFUSED.rstrip(":")}
    verdicts = [(row.stream, row.task) for row in journal if row.type == "VerdictRecorded"]
    assert sorted(verdicts) == sorted((f"run:{row.run}", row.task) for row in _of(rows, ReportRow))


def _project(history: LogBuilder, batch: int) -> Rows:
    async def run() -> Rows:
        with TemporaryDirectory() as folder:
            return await project(await history.log(), Path(folder) / "tables.db", batch)

    return asyncio.run(run())


def _of(rows: Rows, row: type[R]) -> list[R]:
    return [item for item in rows[row.table] if isinstance(item, row)]


def _agree_on_runs(state: PartitionState, rows: list[RunRow]) -> None:
    assert {row.stream for row in rows} == state.runs.keys()
    for row in rows:
        run = state.runs[row.stream]
        assert (row.tenant, row.project, row.run, row.user) == (run.tenant, run.project, run.run, run.context.user)
        assert (row.status, row.closed_ms or 0, row.started_ms) == (run.status, run.closed_ms, run.started_ms)
        assert (row.graph_revision, row.edges, row.tasks) == (run.graph_revision, run.edges, len(run.tasks))
        assert row.last_seq == run.stream_seq
        assert row.counts == dict.fromkeys(STATUSES, 0) | run.counts
        assert (row.tokens_used, row.cost_used) == (run.spent.tokens, run.spent.cost)
        assert (row.tokens_reserved, row.cost_reserved) == (run.reserved.tokens, run.reserved.cost)
        assert row.artifact_bytes == run.artifact_bytes
        assert (row.max_tokens, row.max_wall_ms) == (run.limits.max_tokens, run.limits.max_wall_ms)
        assert row.max_total_artifact_bytes == run.limits.max_total_artifact_bytes
        assert _number(row.max_cost) == _number(run.limits.max_cost)
        if run.status == "blocked":
            assert row.code == run.blocked_by
            named = msgspec.json.decode(row.named_tasks or "", type=list[str])
            # Some of those it named may have been cancelled since.
            assert set(run.blocked) <= set(named) or run.blocked_by == "budget_exhausted"


def _agree_on_tasks(state: PartitionState, rows: list[TaskRow]) -> None:
    nodes = {(run.run, node.id): node for run in state.runs.values() for node in run.tasks.values()}
    assert {(row.run, row.task) for row in rows} == nodes.keys()
    for row in rows:
        node = nodes[row.run, row.task]
        assert (row.status, row.epoch, row.failures) == (node.status, node.epoch, node.failures)
        assert (row.lost, row.verifier_errors) == (node.lost, node.verifier_errors)
        assert (row.number, row.parent, row.root, row.depth) == (node.order, node.created_by, node.root, node.depth)
        assert (row.decompositions, row.open_dependencies) == (node.decompositions, node.open_deps)
        assert (row.taken_dependencies > 0, row.superseded_by) == (node.wanted, node.superseded_by)
        reserved = (node.attempt.reserved if node.attempt else None) or Usage()
        assert (row.tokens_reserved, _number(row.cost_reserved)) == (reserved.tokens, _number(reserved.cost))
        assert row.open_kind == (node.attempt.kind if node.attempt else None)
        assert row.staged == (node.staged.kind if node.staged else None)
        assert (row.goal, row.worker, row.verifier) == (node.spec.goal, node.spec.worker, node.spec.verifier)
        assert row.due_ms == (node.due_ms if node.status == "backoff" else None)
        assert (row.closed_ms is not None) == (node.status == "failed" or node.status in FINAL_TASK)
        run = state.runs[f"run:{row.run}"]
        if node.status in ("blocked", "failed"):
            assert row.code == (run.blocked | run.failed)[row.task]
        if node.status == "cancelled":
            assert row.code in CANCELLED_BY
            assert (row.code == "task_cancelled") == (row.task in run.cancelled)


def _agree_on_edges(state: PartitionState, rows: list[EdgeRow]) -> None:
    assert sorted((row.run, row.task, row.dependency) for row in rows) == sorted(
        (run.run, node.id, dependency)
        for run in state.runs.values()
        for node in run.tasks.values()
        for dependency in node.deps
    )
    settled: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        run = state.runs[f"run:{row.run}"]
        node, dependency = run.tasks[row.task], run.tasks[row.dependency]
        named = {_in_place_of(run, id) for id in node.spec.depends_on}
        assert (row.origin == "initial") == (_in_place_of(run, row.dependency) in named)
        assert (row.condition is not None) == any(each.task == row.dependency for each in node.conditions)
        assert (row.state == "open") == (dependency.status not in ("verified", "skipped"))
        assert (row.state == "taken") <= (dependency.status == "verified")
        assert row.condition or (row.state == "taken") == (dependency.status == "verified")
        settled.setdefault((row.run, row.task), []).append(row.state)
    for run, node in _nodes(state):
        states = settled.get((run.run, node.id), [])
        assert (states.count("open"), "taken" in states) == (node.open_deps, node.wanted)


def _agree_on_attempts(state: PartitionState, rows: list[AttemptRow]) -> None:
    epochs: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        epochs.setdefault((row.run, row.task), []).append(row.epoch)
        run = state.runs[f"run:{row.run}"]
        attempt = run.tasks[row.task].attempt
        if attempt is not None and attempt.epoch == row.epoch:
            assert row.status == ("open" if attempt.claim is None else "running")
            assert row.process == (attempt.claim.process if attempt.claim else None)
            assert (row.kind, row.phase, row.unserved) == (attempt.kind, attempt.phase, attempt.unserved)
            assert (row.opened_ms, row.closed_ms) == (attempt.opened_ms, None)
            reserved = attempt.reserved or Usage()
            assert (row.tokens_reserved, _number(row.cost_reserved)) == (reserved.tokens, _number(reserved.cost))
            assert (row.tokens_used, row.cost_used) == (0, "0")
        else:
            assert row.status not in ("open", "running")
            assert row.closed_ms is not None
            assert (row.status == "submitted") <= (run.tasks[row.task].staged is not None)
            assert row.kind == "work" or row.status != "submitted"
        if row.status == "cancelled":
            assert row.code in CLOSED_BY
    for run, node in _nodes(state):
        assert epochs.get((run.run, node.id), []) == list(range(1, node.epoch + 1))


def _agree_on_sums(rows: Rows) -> None:
    """What a task has used is what its attempts have used, and what a run has used is what its tasks have used."""
    of_task, of_run = _sums(_of(rows, AttemptRow)), _sums(_of(rows, TaskRow))
    nothing = (0, Decimal(0))
    for task in _of(rows, TaskRow):
        assert (task.tokens_used, Decimal(task.cost_used)) == of_task.get((task.run, task.task), nothing)
    for run in _of(rows, RunRow):
        used = [spent for (id, _), spent in of_run.items() if id == run.run]
        assert run.tokens_used == sum([tokens for tokens, _ in used])
        assert Decimal(run.cost_used) == sum([cost for _, cost in used], Decimal(0))


def _sums(rows: Sequence[AttemptRow] | Sequence[TaskRow]) -> dict[tuple[str, str], tuple[int, Decimal]]:
    sums: dict[tuple[str, str], tuple[int, Decimal]] = {}
    for row in rows:
        tokens, cost = sums.get((row.run, row.task), (0, Decimal(0)))
        sums[row.run, row.task] = (tokens + row.tokens_used, cost + Decimal(row.cost_used))
    return sums


def _agree_on_artifacts(state: PartitionState, rows: list[ArtifactRow]) -> None:
    shown: dict[tuple[str, str], list[ArtifactRef]] = {}
    for row in rows:
        if row.state == "published":
            assert row.published_ms is not None
            shown.setdefault((row.run, row.task), []).append(row.ref)
    for run, node in _nodes(state):
        assert tuple(shown.pop((run.run, node.id), ())) == node.published
        if node.staged is not None and node.staged.kind == "candidate":
            refs = [row.ref for row in rows if (row.run, row.task) == (run.run, node.id) and row.state == "staged"]
            assert tuple(refs[-len(node.staged.artifacts) :]) == node.staged.artifacts
    assert not shown


def _number(cost: str | None) -> Decimal | None:
    return None if cost is None else Decimal(cost)


def _in_place_of(run: RunState, id: str) -> str:
    """What stands now where the task stood."""
    while (replacement := run.tasks[id].superseded_by) is not None:
        id = replacement
    return id


def _nodes(state: PartitionState) -> list[tuple[RunState, TaskNode]]:
    return [(run, node) for run in state.runs.values() for node in run.tasks.values()]


def _void_events(history: LogBuilder) -> int:
    """Events in records that are copies of others."""
    values = [record.value for record in history.records]
    return sum(
        parts[0].count
        for place, value in enumerate(values)
        if value in values[:place] and (parts := split_value(value))
    )
