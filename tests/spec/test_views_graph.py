"""What the tables of a run's graph say after each kind of history."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec
import pytest

from dagbok.events.canonical import sha256_hex
from dagbok.events.places import inline_bytes
from dagbok.events.run.commands import CancelRun, PauseRun, RejectAttempt, ResolveBlock
from dagbok.events.run.values import ArtifactItem, Candidate, Claim
from dagbok.projections.queries import Queries
from dagbok.projections.views.graph.rows import AttemptRow, TaskRow
from dagbok.testing import act
from dagbok.testing.make import CHECK, blocked, candidate, decompose, failure, pin, start, task
from tests.support.logbuilder import START_MS, LogBuilder
from tests.support.places import Place

ME = ("acme", "docs")
RUN = "run-1"
CLAIM = Claim("process-1", 1, "nonce")

Show = Callable[[LogBuilder], Awaitable[Queries]]


@pytest.fixture
def show(place: Place) -> Show:
    """Project what a builder has written, and query it."""

    async def project(builder: LogBuilder) -> Queries:
        return Queries(await place.projected(builder))

    return project


class Story:
    """A run, told command by command; each takes 100 ms."""

    def __init__(self, *, tasks: tuple[str, ...] = ("root",), judges_decompositions: bool = False) -> None:
        self.log = LogBuilder()
        judge = pin("candidate", "decomposition") if judges_decompositions else pin()
        self.log.send(RUN, start(*[task(id) for id in tasks], verifiers={CHECK: judge}))

    def tell(self, command: object) -> None:
        """The next command."""
        self.log.now_ms += 100
        self.log.send(RUN, command)  # type: ignore[arg-type]

    def claims(self, id: str) -> None:
        self.tell(act.start_attempt(self.log.run(RUN), id, claim=CLAIM))

    def submits(self, id: str, outcome: object) -> None:
        self.tell(act.submit_outcome(self.log.run(RUN), id, outcome))  # type: ignore[arg-type]

    def judges(self, id: str, verdict: str) -> None:
        self.tell(act.submit_verdict(self.log.run(RUN), id, verdict))  # type: ignore[arg-type]


async def test_a_run_that_was_started(show: Show) -> None:
    queries = await show(Story(tasks=("one", "two")).log)
    run = queries.get_run(*ME, RUN)
    assert run is not None
    assert (run.status, run.user, run.stream) == ("running", "local", "run:run-1")
    assert (run.started_ms, run.closed_ms, run.graph_revision) == (START_MS, None, 1)
    assert (run.tasks, run.counts["ready"], run.edges) == (2, 2, 0)
    assert run.last_seq == 4  # RunStarted, TasksAdded, two AttemptOpened


async def test_a_task_is_verified_and_its_run_succeeds(show: Show) -> None:
    story = Story()
    story.claims("root")
    story.submits("root", candidate({"lines": 3}))
    story.judges("root", "pass")
    queries = await show(story.log)
    (root,) = queries.list_tasks(*ME, RUN)
    assert (root.status, root.attempts, root.epoch, root.code) == ("verified", 1, 2, None)
    assert (root.opened_ms, root.started_ms, root.closed_ms) == (START_MS, START_MS + 100, START_MS + 300)
    work, review = queries.attempts(*ME, RUN)
    assert (work.kind, work.status, work.outcome, work.process) == ("work", "succeeded", "candidate", "process-1")
    assert (work.opened_ms, work.started_ms, work.closed_ms) == (START_MS, START_MS + 100, START_MS + 200)
    assert (review.kind, review.status, review.outcome) == ("verify", "succeeded", "pass")
    run = queries.get_run(*ME, RUN)
    assert run is not None
    assert (run.status, run.closed_ms, run.counts["verified"]) == ("succeeded", START_MS + 300, 1)


async def test_an_attempt_that_was_never_started_is_claimed_by_its_outcome(show: Show) -> None:
    story = Story()
    story.submits("root", candidate())
    (work, review) = (await show(story.log)).attempts(*ME, RUN)
    assert (work.status, work.process, work.started_ms) == ("submitted", "process-1", None)
    assert (review.status, review.process) == ("open", None)


async def test_a_failed_verdict_fails_the_work_and_says_why(show: Show) -> None:
    story = Story()
    story.submits("root", candidate())
    run = story.log.run(RUN)
    told = act.report(run, "root", "fail", diagnostics=msgspec.Raw(b'{"line":7}'))
    story.tell(act.submit_verdict(run, "root", told))
    queries = await show(story.log)
    (root,) = queries.list_tasks(*ME, RUN)
    assert (root.status, root.failures, root.code, root.reason) == ("backoff", 1, "verification_failed", '{"line":7}')
    assert root.due_ms == story.log.run(RUN).tasks["root"].due_ms
    work, review = queries.attempts(*ME, RUN)
    assert (work.status, work.outcome, work.code) == ("failed", "candidate", "verification_failed")
    assert (review.status, review.outcome) == ("succeeded", "fail")
    (report,) = queries.reports(*ME, RUN, "root")
    assert (report.verdict, report.verifier, report.diagnostics, report.epoch) == ("fail", CHECK, '{"line":7}', 2)
    assert msgspec.json.decode(report.subject) == [sha256_hex(b"null")]


async def test_a_failure_is_told_with_its_type(show: Show) -> None:
    story = Story()
    story.tell(act.fail_attempt(story.log.run(RUN), "root", failure("no such file", terminal=True)))
    queries = await show(story.log)
    (attempt,) = queries.attempts(*ME, RUN)
    assert (attempt.status, attempt.code, attempt.message) == ("failed", "worker_failed", "ValueError: no such file")
    (root,) = queries.list_tasks(*ME, RUN)
    assert (root.status, root.code, root.closed_ms) == ("failed", "worker_failed", START_MS + 100)
    run = queries.get_run(*ME, RUN)
    assert run is not None
    assert (run.status, run.code, run.named_tasks) == ("failed", "worker_failed", '["root"]')


async def test_a_blocked_task_blocks_its_run_until_it_is_resolved(show: Show) -> None:
    story = Story()
    story.submits("root", blocked("needs a key"))
    queries = await show(story.log)
    (root,) = queries.list_tasks(*ME, RUN)
    assert (root.status, root.code, root.reason) == ("blocked", "worker_blocked", "needs a key")
    (attempt,) = queries.attempts(*ME, RUN)
    assert (attempt.status, attempt.outcome, attempt.process) == ("failed", "blocked", "process-1")
    run = queries.get_run(*ME, RUN)
    assert run is not None
    assert (run.status, run.code, run.named_tasks) == ("blocked", "worker_blocked", '["root"]')
    story.tell(ResolveBlock("root", "here it is"))
    queries = await show(story.log)
    (root,) = queries.list_tasks(*ME, RUN)
    assert (root.status, root.code, root.reason) == ("ready", None, None)
    run = queries.get_run(*ME, RUN)
    assert run is not None
    assert (run.status, run.code, run.named_tasks) == ("running", None, None)


async def test_a_decomposition_adds_tasks_and_edges(show: Show) -> None:
    story = Story()
    story.submits("root", decompose(task("left"), task("right", depends_on=("left",))))
    queries = await show(story.log)
    (tree,) = queries.task_tree(*ME, RUN)
    assert (tree.task.task, tree.task.status, tree.task.open_dependencies) == ("root", "waiting", 2)
    shown = [(child.task.task, child.task.status, child.task.depth) for child in tree.children]
    assert shown == [("left", "ready", 1), ("right", "waiting", 1)]
    assert [(edge.task, edge.dependency, edge.origin) for edge in queries.edges(*ME, RUN)] == [
        ("right", "left", "initial"),
        ("root", "left", "decomposition"),
        ("root", "right", "decomposition"),
    ]
    (work, *_) = queries.attempts(*ME, RUN, "root")
    assert (work.status, work.outcome) == ("succeeded", "decompose")


async def test_a_judged_decomposition_succeeds_with_its_verdict(show: Show) -> None:
    story = Story(judges_decompositions=True)
    story.submits("root", decompose(task("left")))
    (root,) = (await show(story.log)).list_tasks(*ME, RUN)
    assert (root.status, root.staged, root.staged_epoch) == ("verifying", "decomposition", 1)
    story.judges("root", "pass")
    queries = await show(story.log)
    work, review = queries.attempts(*ME, RUN, "root")
    assert (work.status, review.status, review.outcome) == ("succeeded", "succeeded", "pass")


async def test_a_decomposition_that_passed_too_late_fails_with_the_rule_that_it_breaks_now(show: Show) -> None:
    story = Story(tasks=("one", "two"), judges_decompositions=True)
    for root in ("one", "two"):
        story.submits(root, decompose(task("same")))
    for root in ("one", "two"):
        story.judges(root, "pass")
    queries = await show(story.log)
    work, review, again = queries.attempts(*ME, RUN, "two")
    assert (again.kind, again.status) == ("work", "open")
    assert (work.status, work.outcome, work.code) == ("failed", "decompose", "idempotency_conflict")
    assert (review.status, review.outcome) == ("succeeded", "pass")


async def test_a_refused_decomposition_fails_its_attempt_with_the_rule_that_it_breaks(show: Show) -> None:
    story = Story()
    story.submits("root", decompose(task("left", depends_on=("nowhere",))))
    queries = await show(story.log)
    (attempt,) = queries.attempts(*ME, RUN)
    assert (attempt.status, attempt.outcome, attempt.code) == ("failed", "decompose", "unknown_dependency")
    (root,) = queries.list_tasks(*ME, RUN)
    assert (root.status, root.code) == ("blocked", "unknown_dependency")


async def test_lost_released_and_unserved_attempts_say_so(show: Show) -> None:
    story = Story()
    story.tell(RejectAttempt("root", 1, "process-9"))
    story.claims("root")
    story.tell(act.release_attempt(story.log.run(RUN), "root"))
    story.claims("root")
    story.log.now_ms = act.deadline_ms(story.log.run(RUN), "lease", "root")
    story.tell(act.fire_timer(story.log.run(RUN), "lease", "root"))
    queries = await show(story.log)
    released, lost, present = queries.attempts(*ME, RUN)
    assert (released.status, released.unserved) == ("released", 1)
    assert (lost.status, lost.code) == ("lost", "lease_expired")
    assert present.status == "open"
    (root,) = queries.list_tasks(*ME, RUN)
    assert (root.status, root.lost, root.attempts, root.started_ms) == ("ready", 1, 3, START_MS + 200)


async def test_cancelling_a_run_cancels_what_is_open_and_what_waits_for_a_verdict(show: Show) -> None:
    story = Story(tasks=("done", "judged", "idle"))
    story.submits("done", candidate())
    story.judges("done", "pass")
    story.submits("judged", candidate())
    story.tell(CancelRun("enough"))
    queries = await show(story.log)
    assert _statuses(queries.list_tasks(*ME, RUN)) == {"done": "verified", "judged": "cancelled", "idle": "cancelled"}
    assert {row.closed_ms for row in queries.list_tasks(*ME, RUN, status="cancelled")} == {START_MS + 400}
    assert [row.status for row in queries.attempts(*ME, RUN, "judged")] == ["cancelled", "cancelled"]
    assert [row.status for row in queries.attempts(*ME, RUN, "idle")] == ["cancelled"]
    run = queries.get_run(*ME, RUN)
    assert run is not None
    assert (run.status, run.reason, run.closed_ms) == ("cancelled", "enough", START_MS + 400)
    assert (run.counts["verified"], run.counts["cancelled"]) == (1, 2)


async def test_artifacts_are_published_with_their_verdict_and_found_in_the_log(show: Show) -> None:
    story = Story()
    stored = ArtifactItem("big", sha256_hex(b"elsewhere"), 9, "text/plain")
    story.submits("root", Candidate((*candidate({"lines": 3}).artifacts, stored)))
    staged = (await show(story.log)).artifacts(*ME, RUN)
    assert [(row.name, row.state, row.published_ms) for row in staged] == [
        ("result", "staged", None),
        ("big", "staged", None),
    ]
    story.judges("root", "pass")
    queries = await show(story.log)
    small, big = queries.artifacts(*ME, RUN, state="published")
    assert (small.published_ms, small.epoch, small.item) == (START_MS + 200, 1, 0)
    assert inline_bytes(await story.log.log(), small.ref) == b'{"lines":3}'
    assert big.ref.place is None
    assert queries.artifacts(*ME, RUN, "root", "big") == [big]


async def test_a_candidate_that_failed_stays_staged(show: Show) -> None:
    story = Story()
    story.submits("root", candidate("wrong"))
    story.judges("root", "fail")
    story.log.now_ms += 60_000
    story.tell(act.fire_timer(story.log.run(RUN), "backoff", "root"))
    story.submits("root", candidate("right"))
    story.judges("root", "pass")
    rows = (await show(story.log)).artifacts(*ME, RUN)
    assert [(row.epoch, row.state) for row in rows] == [(1, "staged"), (3, "published")]


async def test_a_paused_run_says_why(show: Show) -> None:
    story = Story()
    story.tell(PauseRun("lunch"))
    run = (await show(story.log)).get_run(*ME, RUN)
    assert run is not None
    assert (run.status, run.reason, run.changed_ms) == ("paused", "lunch", START_MS + 100)


def _statuses(rows: list[TaskRow] | list[AttemptRow]) -> dict[str, str]:
    return {row.task: row.status for row in rows}
