"""What the tables say of branches, repair and budgets."""

from __future__ import annotations

import pytest

from dagbok.events.canonical import sha256_hex
from dagbok.events.run.commands import AmendRun, CancelRun, CancelTask, RetryTask, SetLimits, SupersedeTask
from dagbok.events.run.values import ArtifactItem, Candidate, Claim, Condition, Limits, Spec, TaskLimits, Usage
from dagbok.projections.queries import Queries
from dagbok.projections.views.graph.conditions import readable
from dagbok.projections.views.graph.rows import RunRow
from dagbok.testing import act
from dagbok.testing.make import CHECK, candidate, decompose, failure, pin, start, task, when
from tests.support.logbuilder import LogBuilder
from tests.support.places import Place

ME = ("acme", "docs")
RUN = "run-1"
CLAIM = Claim("process-1", 1, "nonce")


class Story:
    """A run, told command by command; each takes 100 ms."""

    def __init__(self, *tasks: Spec, limits: Limits | None = None, roots: tuple[str, ...] | None = None) -> None:
        self.log = LogBuilder()
        self.log.send(RUN, start(*tasks, limits=limits, roots=roots))

    def tell(self, command: object) -> Story:
        """The next command."""
        self.log.now_ms += 100
        self.log.send(RUN, command)  # type: ignore[arg-type]
        return self

    def passes(self, id: str, outputs: dict[str, object] | None = None, usage: Usage = Usage()) -> Story:  # noqa: B008
        """The task is worked on and verified."""
        told = candidate("done", outputs=outputs)  # type: ignore[arg-type]
        self.tell(act.submit_outcome(self.log.run(RUN), id, told, claim=CLAIM, usage=usage))
        return self.tell(act.submit_verdict(self.log.run(RUN), id, "pass", claim=CLAIM))

    async def tables(self, place: Place) -> Queries:
        """The tables after all that, fed commit by commit."""
        return Queries(await place.projected(self.log, 1))


def run_of(queries: Queries) -> RunRow:
    """The row of the run."""
    row = queries.get_run(*ME, RUN)
    assert row is not None
    return row


def statuses(queries: Queries) -> dict[str, str]:
    """The status of each task."""
    return {row.task: row.status for row in queries.list_tasks(*ME, RUN)}


def edges(queries: Queries) -> dict[tuple[str, str], str]:
    """The state of each edge."""
    return {(row.task, row.dependency): row.state for row in queries.edges(*ME, RUN)}


def branching() -> Story:
    """`publish` if the review approves, `rework` if not; `notify` after `publish`."""
    return Story(
        task("review"),
        task("publish", depends_on=("review",), when=(when("review", "/decision", "approve"),)),
        task("rework", depends_on=("review",), when=(when("review", "/decision", "approve", op="not_in"),)),
        task("notify", depends_on=("publish",)),
    )


async def test_edges_have_a_condition_and_are_open_until_it_is_decided(place: Place) -> None:
    queries = await branching().tables(place)
    assert [(row.task, row.condition, row.state) for row in queries.edges(*ME, RUN, conditional=True)] == [
        ("publish", ".decision = approve", "open"),
        ("rework", ".decision != approve", "open"),
    ]


async def test_what_no_edge_leads_to_is_skipped_with_all_that_only_waits_for_it(place: Place) -> None:
    story = branching().passes("review", {"decision": "reject"})
    queries = await story.tables(place)
    assert statuses(queries) == {
        "review": "verified",
        "publish": "skipped",
        "rework": "ready",
        "notify": "skipped",
    }
    assert edges(queries) == {
        ("publish", "review"): "not_taken",
        ("rework", "review"): "taken",
        ("notify", "publish"): "not_taken",
    }
    skipped = queries.get_task(*ME, RUN, "notify")
    assert skipped is not None
    assert (skipped.closed_ms, skipped.open_dependencies, skipped.taken_dependencies) == (story.log.now_ms, 0, 0)
    assert (run_of(queries).skipped, run_of(queries).counts["skipped"]) == (2, 2)


async def test_a_superseded_task_names_what_took_its_place_and_its_edges_lead_there(place: Place) -> None:
    story = Story(task("draft"), task("print", depends_on=("draft",), when=(when("draft", "/ok", True),)))
    story.tell(act.start_attempt(story.log.run(RUN), "draft", claim=CLAIM))
    story.tell(SupersedeTask("draft", task("draft-2", goal="write it again")))
    queries = await story.tables(place)
    old, new = (queries.get_task(*ME, RUN, id) for id in ("draft", "draft-2"))
    assert old is not None
    assert new is not None
    assert (old.status, old.superseded_by, old.closed_ms) == ("superseded", "draft-2", story.log.now_ms)
    assert (new.status, new.parent, new.number) == ("ready", None, 2)
    (edge,) = queries.edges(*ME, RUN)
    assert (edge.dependency, edge.origin, edge.condition, edge.state) == ("draft-2", "initial", ".ok = true", "open")
    attempt, _ = queries.attempts(*ME, RUN)
    assert (attempt.status, attempt.code) == ("cancelled", "task_superseded")
    story.passes("draft-2", {"ok": True})
    assert edges(await story.tables(place)) == {("print", "draft-2"): "taken"}


async def test_the_replacement_of_a_root_is_the_root(place: Place) -> None:
    story = Story(task("one")).tell(SupersedeTask("one", task("two")))
    queries = await story.tables(place)
    assert {row.task: row.root for row in queries.list_tasks(*ME, RUN)} == {"one": False, "two": True}


async def test_a_candidate_of_a_superseded_task_will_not_be_judged(place: Place) -> None:
    story = Story(task("one"))
    story.tell(act.submit_outcome(story.log.run(RUN), "one", candidate("first"), claim=CLAIM))
    queries = await story.tell(SupersedeTask("one", task("two"))).tables(place)
    assert [(row.kind, row.status, row.code) for row in queries.attempts(*ME, RUN, "one")] == [
        ("work", "cancelled", "task_superseded"),
        ("verify", "cancelled", "task_superseded"),
    ]


async def test_cancelled_tasks_say_why(place: Place) -> None:
    story = Story(task("one"), task("two"), task("three"))
    story.tell(act.submit_outcome(story.log.run(RUN), "one", decompose(task("child")), claim=CLAIM))
    story.tell(CancelTask("one", "not needed")).tell(CancelRun("enough"))
    queries = await story.tables(place)
    assert {row.task: (row.status, row.code, row.reason) for row in queries.list_tasks(*ME, RUN)} == {
        "one": ("cancelled", "task_cancelled", "not needed"),
        "two": ("cancelled", "run_cancelled", None),
        "three": ("cancelled", "run_cancelled", None),
        "child": ("cancelled", "parent_cancelled", None),
    }
    assert run_of(queries).counts["cancelled"] == 4


async def test_a_task_that_is_tried_again_is_as_new_but_for_its_attempts(place: Place) -> None:
    story = Story(task("root"))
    story.tell(act.fail_attempt(story.log.run(RUN), "root", failure(terminal=True), claim=CLAIM))
    queries = await story.tell(RetryTask("root")).tables(place)
    (root,) = queries.list_tasks(*ME, RUN)
    assert (root.status, root.failures, root.attempts, root.epoch) == ("ready", 0, 2, 2)
    assert (root.code, root.reason, root.closed_ms) == (None, None, None)
    assert (run_of(queries).status, run_of(queries).closed_ms) == ("running", None)


async def test_a_review_that_is_asked_again_later_keeps_the_candidate(place: Place) -> None:
    story = Story(task("root"))
    story.tell(act.submit_outcome(story.log.run(RUN), "root", candidate("it"), claim=CLAIM))
    story.tell(act.submit_verdict(story.log.run(RUN), "root", "error", claim=CLAIM))
    (root,) = (await story.tables(place)).list_tasks(*ME, RUN)
    assert (root.status, root.staged, root.staged_epoch) == ("backoff", "candidate", 1)
    assert root.due_ms == story.log.run(RUN).tasks["root"].due_ms
    story.log.now_ms = root.due_ms
    (root,) = (await story.tell(act.fire_timer(story.log.run(RUN), "backoff", "root")).tables(place)).list_tasks(
        *ME, RUN
    )
    assert (root.status, root.open_kind, root.due_ms) == ("verifying", "verify", None)


async def test_what_is_reserved_is_replaced_by_what_was_used(place: Place) -> None:
    limits = Limits(max_tokens=5_000, max_cost="5.00", max_wall_ms=60_000, max_total_artifact_bytes=10_000)
    story = Story(task("root", limits=TaskLimits(tokens=300, cost="0.30")), limits=limits)
    queries = await story.tables(place)
    (root,), (attempt,), run = queries.list_tasks(*ME, RUN), queries.attempts(*ME, RUN), run_of(queries)
    assert (root.tokens_per_attempt, root.cost_per_attempt) == (300, "0.3")
    for row in (root, attempt, run):
        assert (row.tokens_reserved, row.cost_reserved, row.tokens_used, row.cost_used) == (300, "0.3", 0, "0")
    assert (run.max_tokens, run.max_cost, run.max_wall_ms) == (5_000, "5", 60_000)
    assert run.max_total_artifact_bytes == 10_000
    queries = await story.passes("root", usage=Usage(120, "0.10")).tables(place)
    (root,), (attempt, _), run = queries.list_tasks(*ME, RUN), queries.attempts(*ME, RUN), run_of(queries)
    for used in (root, attempt, run):
        assert (used.tokens_used, used.cost_used) == (120, "0.1")
    for free in (root, run):
        assert (free.tokens_reserved, free.cost_reserved) == (0, "0")
    assert (attempt.tokens_reserved, run.artifact_bytes) == (300, len('"done"'))


async def test_costs_add_up_exactly(place: Place) -> None:
    story = Story(*[task(f"t{n}") for n in range(10)])
    for n in range(10):
        story.passes(f"t{n}", usage=Usage(cost="0.1"))
    assert run_of(await story.tables(place)).cost_used == "1"


async def test_a_run_out_of_budget_names_the_task_that_it_cannot_afford_until_the_limit_is_raised(
    place: Place,
) -> None:
    story = Story(task("one"), task("two", depends_on=("one",)), limits=Limits(max_tokens=100))
    story.passes("one", usage=Usage(tokens=100))
    run = run_of(await story.tables(place))
    assert (run.status, run.code, run.named_tasks) == ("blocked", "budget_exhausted", '["two"]')
    run = run_of(await story.tell(SetLimits(Limits(max_tokens=200))).tables(place))
    assert (run.status, run.code, run.max_tokens) == ("running", None, 200)


async def test_sums_stop_at_what_a_database_holds(place: Place) -> None:
    story = Story(task("root"), limits=Limits(max_artifact_bytes=2**53))
    big = [ArtifactItem(f"a{n}", sha256_hex(b"x"), 2**53, "text/plain") for n in range(1_030)]
    story.tell(act.submit_outcome(story.log.run(RUN), "root", Candidate(tuple(big)), claim=CLAIM))
    assert run_of(await story.tables(place)).artifact_bytes == 2**63 - 1


async def test_a_review_that_an_amendment_ends_says_so(place: Place) -> None:
    story = Story(task("root"))
    story.tell(act.submit_outcome(story.log.run(RUN), "root", candidate("it"), claim=CLAIM))
    queries = await story.tell(AmendRun({CHECK: pin(version="2")})).tables(place)
    assert [(row.kind, row.status, row.code) for row in queries.attempts(*ME, RUN)] == [
        ("work", "submitted", None),
        ("verify", "cancelled", "run_amended"),
        ("verify", "open", None),
    ]


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (when("a", "/decision", "approve"), ".decision = approve"),
        (when("a", "/decision", "approve", op="not_in"), ".decision != approve"),
        (when("a", "/n", 1, 2, None), ".n in (1, 2, null)"),
        (when("a", "/n", "1", "true", op="not_in"), '.n not in ("1", "true")'),
        (when("a", "/list/0/score", 0.8, op="ge"), ".list.0.score >= 0.8"),
        (when("a", "/n", 1, op="lt"), ".n < 1"),
        (when("a", "", "all of it"), '= "all of it"'),
        (when("a", "/odd name/~1~0", {"b": [1]}), '."odd name"."/~" = {"b":[1]}'),
    ],
)
def test_conditions_read_as_text(condition: Condition, text: str) -> None:
    assert readable([condition]) == text


def test_conditions_on_one_edge_hold_together() -> None:
    both = [when("a", "/n", 1, op="gt"), when("a", "/say", "yes")]
    assert readable(both) == ".n > 1 and .say = yes"
