"""Queries: what they return, in which order, and to whom."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dagbok.events.envelope import Sender
from dagbok.events.rule import GENESIS
from dagbok.events.run.commands import CancelRun
from dagbok.projections.queries import Queries
from dagbok.projections.store import Tables
from dagbok.testing import act
from dagbok.testing.make import candidate, decompose, start, task
from tests.support.logbuilder import LogBuilder
from tests.support.places import Place

ME = ("acme", "docs")
OTHERS = (("rival", "docs"), ("acme", "other"), ("", ""))


def _history() -> LogBuilder:
    """Three runs of acme/docs, oldest first: `old` was cancelled, `tree` has grown; and one of a rival."""
    builder = LogBuilder()
    builder.send("old", start(task("root")))
    builder.send("old", CancelRun())
    builder.now_ms += 1_000
    builder.send("tree", start(task("root"), task("other")))
    builder.send("tree", act.submit_outcome(builder.run("tree"), "root", decompose(task("b"), task("a"))))
    builder.send("tree", act.submit_outcome(builder.run("tree"), "a", candidate("one", name="report")))
    builder.send("tree", act.submit_verdict(builder.run("tree"), "a", "pass"))
    builder.now_ms += 1_000
    builder.send("new", start(task("root")))
    builder.send("theirs", start(task("root")), sender=Sender("rival", "docs", "user:eve"))
    return builder


@pytest.fixture
async def tables(place: Place) -> Tables:
    builder = _history()
    builder.void(b"no commit")
    return await place.projected(builder, 3)


@pytest.fixture
def queries(tables: Tables) -> Queries:
    return Queries(tables)


def test_runs_are_listed_newest_first(queries: Queries) -> None:
    assert [run.run for run in queries.list_runs(*ME)] == ["new", "tree", "old"]
    assert [run.run for run in queries.list_runs(*ME, limit=2)] == ["new", "tree"]
    assert [run.run for run in queries.list_runs(*ME, status="cancelled")] == ["old"]


def test_tasks_are_listed_in_the_order_in_which_they_came(queries: Queries) -> None:
    assert [task.task for task in queries.list_tasks(*ME, "tree")] == ["root", "other", "b", "a"]
    assert [task.task for task in queries.list_tasks(*ME, "tree", after=1)] == ["b", "a"]
    assert [task.task for task in queries.list_tasks(*ME, "tree", after=0, limit=1)] == ["other"]
    assert [task.task for task in queries.list_tasks(*ME, "tree", status="verified")] == ["a"]


def test_one_task_is_found_by_its_id(queries: Queries) -> None:
    found = queries.get_task(*ME, "tree", "b")
    assert found is not None
    assert (found.parent, found.depth, found.root) == ("root", 1, False)
    assert queries.get_task(*ME, "tree", "nobody") is None


def test_the_tree_has_each_task_under_the_one_that_it_came_of(queries: Queries) -> None:
    root, other = queries.task_tree(*ME, "tree")
    assert [child.task.task for child in root.children] == ["b", "a"]
    assert other.children == []


async def test_the_pools_of_a_run_are_those_of_its_tasks_or_of_some_of_them(place: Place) -> None:
    builder = LogBuilder()
    builder.send("run", start(task("a", pool="two"), task("b", pool="one"), task("c", pool="two", depends_on=("b",))))
    queries = Queries(await place.projected(builder))
    assert queries.pools(*ME, "run") == ["one", "two"]
    assert queries.pools(*ME, "run", ["waiting"]) == ["two"]
    assert queries.pools(*ME, "run", ["verified"]) == []
    assert queries.pools(*ME, "tree\0") == []


def test_the_journal_is_read_in_parts(queries: Queries) -> None:
    everything = queries.journal(*ME, "tree")
    parts = queries.journal(*ME, "tree", limit=4)
    parts += queries.journal(*ME, "tree", after_seq=parts[-1].seq)
    assert parts == everything
    verified = queries.journal(*ME, "tree", types=["TaskVerified", "TasksAdded"])
    assert [row.type for row in verified] == ["TasksAdded", "TasksAdded", "TaskVerified"]
    assert queries.journal(*ME, "tree", types=[]) == []


def test_an_artifact_is_found_by_task_and_name(queries: Queries) -> None:
    (found,) = queries.artifacts(*ME, "tree", "a", "report", state="published")
    assert found.size_bytes == 5
    assert queries.artifacts(*ME, "tree", "a", "nothing") == []


ASKED: dict[str, Callable[[Queries, str, str], object]] = {
    "list_runs": lambda queries, *who: [run for run in queries.list_runs(*who) if run.run != "theirs"],
    "get_run": lambda queries, *who: queries.get_run(*who, "tree"),
    "list_tasks": lambda queries, *who: queries.list_tasks(*who, "tree"),
    "get_task": lambda queries, *who: queries.get_task(*who, "tree", "a"),
    "task_tree": lambda queries, *who: queries.task_tree(*who, "tree"),
    "pools": lambda queries, *who: queries.pools(*who, "tree"),
    "edges": lambda queries, *who: queries.edges(*who, "tree"),
    "attempts": lambda queries, *who: queries.attempts(*who, "tree"),
    "reports": lambda queries, *who: queries.reports(*who, "tree"),
    "artifacts": lambda queries, *who: queries.artifacts(*who, "tree"),
    "journal": lambda queries, *who: queries.journal(*who, "tree"),
}


@pytest.mark.parametrize("name", ASKED)
def test_nobody_sees_what_belongs_to_another_tenant_or_project(queries: Queries, name: str) -> None:
    ask = ASKED[name]
    assert ask(queries, *ME)
    for who in OTHERS:
        assert not ask(queries, *who)


def test_every_query_is_asked_above() -> None:
    said = {
        "position",
        "void_records",
        "projects_with_runs",
        "refusals",
    }  # of no tenant, or shown in the journal's own tests
    assert {name for name in vars(Queries) if not name.startswith("_")} - said == set(ASKED)


def test_whoever_runs_the_tables_sees_where_there_are_runs(queries: Queries) -> None:
    assert queries.projects_with_runs() == [("acme", "docs"), ("rival", "docs")]
    assert queries.projects_with_runs(limit=1) == [("acme", "docs")]


def test_a_run_that_is_not_there_gives_nothing(queries: Queries) -> None:
    assert queries.get_run(*ME, "nothing") is None
    assert queries.task_tree(*ME, "nothing") == []


def test_a_reader_knows_how_far_the_tables_are(tables: Tables, queries: Queries) -> None:
    builder = _history()
    assert queries.position() == builder.state.position.skip(len(builder.records))
    assert queries.position(7) == GENESIS
    assert queries.void_records() == 1


HUGE = (2**63 - 1, 2**63, 2**64, 10**30)


@pytest.mark.parametrize("number", HUGE)
def test_behind_a_number_that_no_row_can_have_there_is_nothing(queries: Queries, number: int) -> None:
    assert queries.journal(*ME, "tree", after_seq=number) == []
    assert queries.list_tasks(*ME, "tree", after=number) == []


@pytest.mark.parametrize("number", HUGE)
def test_a_limit_that_no_database_can_count_to_is_none(queries: Queries, number: int) -> None:
    assert queries.journal(*ME, "tree", after_seq=-number, limit=number) == queries.journal(*ME, "tree")
    assert queries.list_tasks(*ME, "tree", after=-number, limit=number) == queries.list_tasks(*ME, "tree")
    assert len(queries.list_runs(*ME, limit=number)) == 3
    assert len(queries.list_runs(*ME, behind=(number, "x"))) == 3
    assert queries.list_runs(*ME, behind=(-number, "x")) == []
    assert len(queries.projects_with_runs(limit=number)) == 2
    assert queries.refusals(*ME, limit=number) == queries.refusals(*ME)


def test_fewer_rows_than_none_are_none(queries: Queries) -> None:
    for limit in (0, -1, -(2**70)):
        assert queries.list_runs(*ME, limit=limit) == []
        assert queries.projects_with_runs(limit=limit) == []
        assert queries.refusals(*ME, limit=limit) == []


@pytest.mark.parametrize("name", ["half \ud800", "\udcff", "tree\0"])
def test_a_text_that_no_row_can_have_names_nothing(queries: Queries, name: str) -> None:
    assert queries.get_run(*ME, name) is None
    assert queries.list_runs(name, "docs") == []
    assert queries.list_runs("acme", name) == []
    assert queries.list_runs(*ME, behind=(0, name)) == []
    assert queries.refusals(name, "docs") == []
    assert queries.journal(*ME, "tree", types=[name]) == []
