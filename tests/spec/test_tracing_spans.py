"""Spans are derived from the commits of a run: what begins and ends when, under which parent, with which words."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from dagbok.agents.tracing.fold import MAX_CALLERS, SpanFold
from dagbok.agents.tracing.ids import attempt_span_id, run_span_id, task_span_id, trace_id
from dagbok.agents.tracing.otlp_json import otlp_json
from dagbok.agents.tracing.span import MAX_NOTES, Span
from dagbok.agents.tracing.stored import stored_spans
from dagbok.events.body import decode_body
from dagbok.events.commit import split_value
from dagbok.events.ids import run_id
from dagbok.events.run import commands as c
from dagbok.events.run.values import Claim, Usage
from dagbok.events.traceparent import Parent
from dagbok.projections.task_graph.state import CLOSED_RUN
from dagbok.testing import act, blocked, candidate, decompose, failure, pin, start, task
from tests.support.histories import random_history
from tests.support.logbuilder import START_MS, LogBuilder
from tests.support.scale import scale

RUN = run_id("acme", "docs", "traced")


class Traced(LogBuilder):
    """The history of one run, a second between any two commands."""

    def then(self, command: c.RunCommand) -> None:
        self.now_ms += 1_000
        self.send(RUN, command)

    def work(self, id: str, tokens: int = 0) -> None:
        """Start the present attempt, hand in a candidate, and have it pass."""
        self.then(act.start_attempt(self.run(RUN), id))
        outcome = act.submit_outcome(self.run(RUN), id, candidate({"of": id}))
        self.then(c.SubmitOutcome(id, outcome.epoch, outcome.claim, outcome.input_hash, outcome.outcome, Usage(tokens)))
        self.then(act.submit_verdict(self.run(RUN), id, "pass"))

    async def spans(self) -> list[Span]:
        return [span async for span in stored_spans(await self.log(), 0, RUN)]


def started(*commands: c.StartRun) -> Traced:
    history = Traced()
    for command in commands or (start(task("root")),):
        history.send(RUN, command)
    return history


def only(spans: list[Span], name: str, **attributes: object) -> Span:
    """The one span of this name and these attributes."""
    found = [
        span
        for span in spans
        if span.name == name and all(span.attributes.get(f"dagbok.{k}") == v for k, v in attributes.items())
    ]
    assert len(found) == 1, [(span.name, span.attributes) for span in spans]
    return found[0]


def told_spans(told: Any) -> list[dict[str, Any]]:
    """The spans of a `TracesData`."""
    return [span for resource in told["resourceSpans"] for scope in resource["scopeSpans"] for span in scope["spans"]]


def names(span: Span) -> list[str]:
    return [note.name.removeprefix("dagbok.") for note in span.notes]


async def test_a_run_is_one_trace_of_its_tasks_their_attempts_and_reviews() -> None:
    history = started()
    history.work("root", tokens=7)
    spans = await history.spans()

    assert [span.name for span in spans] == ["work work", "verify check", "task work", "run"]
    work, review, root, run = spans
    assert {span.trace_id for span in spans} == {int(RUN, 16)}
    assert (run.parent_id, root.parent_id) == (None, run.span_id)
    assert (work.parent_id, review.parent_id) == (root.span_id, root.span_id)
    seconds = [(span.start_ms - START_MS, span.end_ms - START_MS) for span in spans]
    assert seconds == [(0, 2_000), (2_000, 3_000), (0, 3_000), (0, 3_000)]
    assert [span.error for span in spans] == [None] * 4


async def test_the_three_ids_and_what_it_is_about_are_attributes() -> None:
    history = started()
    history.work("root", tokens=7)
    work, review, root, run = await history.spans()

    for span in (work, review, root, run):
        assert span.attributes["dagbok.run_id"] == RUN
        assert (span.attributes["dagbok.tenant"], span.attributes["dagbok.project"]) == ("acme", "docs")
    assert [span.attributes["dagbok.task_id"] for span in (work, review, root)] == ["root"] * 3
    assert [span.attributes["dagbok.attempt"] for span in (work, review)] == [1, 2]
    assert [span.attributes["dagbok.kind"] for span in (work, review)] == ["work", "verify"]
    assert work.attributes["dagbok.outcome"] == "candidate"
    assert work.attributes["dagbok.process"] == "process-1"
    assert work.attributes["dagbok.usage.tokens"] == run.attributes["dagbok.usage.tokens"] == 7
    assert (work.attributes["dagbok.waited_ms"], names(work)) == (1_000, ["attempt.claimed"])
    assert (review.attributes["dagbok.verdict"], review.attributes["dagbok.verifier_version"]) == ("pass", "1")
    assert (root.attributes["dagbok.status"], run.attributes["dagbok.status"]) == ("verified", "succeeded")


async def test_ids_are_derived_and_never_nothing() -> None:
    history = started()
    history.work("root")
    work, review, root, run = await history.spans()

    assert trace_id(RUN) == int(RUN, 16)
    assert run.span_id == run_span_id(RUN)
    assert root.span_id == task_span_id(RUN, "root")
    assert (work.span_id, review.span_id) == (attempt_span_id(RUN, "root", 1), attempt_span_id(RUN, "root", 2))
    assert trace_id("nightly") not in (0, trace_id("nightly-2"))
    assert trace_id("0" * 32) > 0
    assert max(trace_id("nightly"), trace_id("0" * 32)) < 2**128


async def test_tasks_of_a_decomposition_stand_below_the_task_that_made_them() -> None:
    history = started()
    history.then(act.submit_outcome(history.run(RUN), "root", decompose(task("left"), task("right"))))
    for id in ("left", "right", "root"):
        history.work(id)
    spans = await history.spans()

    root = only(spans, "task work", task_id="root")
    assert only(spans, "task work", task_id="left").parent_id == root.span_id
    assert names(root) == ["decomposition.accepted"]
    assert root.notes[0].attributes["dagbok.new"] == 2
    assert only(spans, "work work", task_id="root", phase="solve").attributes["dagbok.outcome"] == "decompose"
    assert only(spans, "work work", task_id="root", phase="integrate").attributes["dagbok.attempt"] == 2
    assert only(spans, "run").attributes["dagbok.tasks"] == 3


async def test_a_decomposition_that_a_verifier_judges_ends_each_attempt_once() -> None:
    history = started(start(task("root"), verifiers={"check": pin("candidate", "decomposition")}))
    history.then(act.submit_outcome(history.run(RUN), "root", decompose(task("left"))))
    history.then(act.submit_verdict(history.run(RUN), "root", "pass"))
    history.work("left")
    history.work("root")
    spans = await history.spans()

    assert only(spans, "verify check", task_id="root", attempt=2).attributes["dagbok.judged"] == "decomposition"
    assert len({span.span_id for span in spans}) == len(spans)
    assert names(only(spans, "task work", task_id="root")) == ["decomposition.accepted"]


async def test_a_failed_attempt_has_the_exception_and_the_task_its_backoff() -> None:
    history = started()
    history.then(act.fail_attempt(history.run(RUN), "root", failure("no such page")))
    history.then(act.fire_timer(history.run(RUN), "backoff", "root"))
    history.work("root")
    spans = await history.spans()

    failed = only(spans, "work work", outcome="failed")
    assert failed.error == "ValueError: no such page"
    assert failed.attributes["error.type"] == "worker_failed"
    exception = failed.notes[-1]
    assert exception.name == "exception"
    assert exception.attributes == {"exception.type": "ValueError", "exception.message": "no such page"}
    root = only(spans, "task work")
    assert (names(root), root.error) == (["task.backed_off"], None)


async def test_a_verdict_that_fails_is_no_error_of_the_review_until_the_task_fails() -> None:
    history = started(start(task("root", max_attempts=1)))
    history.then(act.submit_outcome(history.run(RUN), "root", candidate("poor")))
    history.then(act.submit_verdict(history.run(RUN), "root", "fail"))
    spans = await history.spans()

    assert (only(spans, "verify check").attributes["dagbok.verdict"], only(spans, "verify check").error) == (
        "fail",
        None,
    )
    root, run = only(spans, "task work"), only(spans, "run")
    assert (root.attributes["dagbok.status"], root.attributes["error.type"]) == ("failed", "verification_failed")
    assert root.error is not None
    assert (run.attributes["dagbok.status"], run.error) == ("failed", "root")


async def test_an_attempt_that_is_lost_is_an_error_and_an_event_on_its_task() -> None:
    history = started()
    history.then(act.start_attempt(history.run(RUN), "root", claim=Claim("gone", 1, "n")))
    history.then(c.ReportGone("gone"))
    history.work("root")
    spans = await history.spans()

    lost = only(spans, "work work", outcome="lost")
    assert (lost.attributes["error.type"], lost.attributes["dagbok.process"]) == ("process_gone", "gone")
    assert lost.error == "process_gone"
    assert names(only(spans, "task work")) == ["attempt.lost"]


async def test_a_block_is_an_event_and_ends_nothing_but_the_attempt() -> None:
    history = started()
    history.then(act.submit_outcome(history.run(RUN), "root", blocked("ask Ann")))
    open_spans = await history.spans()
    history.then(c.ResolveBlock("root", "asked"))
    history.work("root")
    spans = await history.spans()

    assert [span.name for span in open_spans] == ["work work"]
    assert spans[0] == open_spans[0]
    root, run = only(spans, "task work"), only(spans, "run")
    assert names(root) == ["task.blocked", "task.unblocked"]
    assert root.notes[0].attributes["dagbok.reason"] == "ask Ann"
    assert names(run) == ["run.blocked", "run.reopened"]
    assert "dagbok.part" not in run.attributes


async def test_a_cancelled_run_ends_all_that_is_open() -> None:
    history = started(start(task("first"), task("second", depends_on=("first",))))
    history.then(act.start_attempt(history.run(RUN), "first"))
    history.then(c.CancelRun("enough"))
    spans = await history.spans()

    assert only(spans, "work work").attributes["dagbok.cause"] == "run_cancelled"
    assert [span.attributes["dagbok.status"] for span in spans[1:]] == ["cancelled"] * 3
    assert {span.end_ms for span in spans} == {START_MS + 2_000}
    assert spans[-1].name == "run"


async def test_a_failed_run_that_goes_on_has_a_second_part_and_changes_no_span_that_was_sent() -> None:
    history = started(start(task("first", max_attempts=1), task("last", depends_on=("first",)), roots=("last",)))
    history.then(act.fail_attempt(history.run(RUN), "first", failure(terminal=True)))
    before = await history.spans()
    history.then(c.RetryTask("first", "once more"))
    history.work("first")
    history.work("last")
    spans = await history.spans()

    assert spans[: len(before)] == before
    assert len({span.span_id for span in spans}) == len(spans)
    run, again = only(before, "run"), only(spans, "run", part=1)
    assert (run.parent_id, again.parent_id, again.attributes["dagbok.status"]) == (None, run.span_id, "succeeded")
    first = only(spans, "task work", task_id="first", part=1)
    last = only(spans, "task work", task_id="last", part=1)
    assert (first.parent_id, last.parent_id) == (run.span_id, run.span_id)
    assert only(spans, "work work", task_id="first", attempt=2).parent_id == first.span_id
    assert again.start_ms == first.start_ms == last.start_ms == START_MS + 2_000


async def test_each_part_of_a_run_is_linked_to_the_span_in_which_it_was_asked_for() -> None:
    first, second = Parent(1, 2, True), Parent(3, 4, False)
    history = Traced()
    history.traceparent = first.told()
    history.send(RUN, start(task("root", max_attempts=1)))
    history.traceparent = Parent(5, 6, True).told()  # of a worker: nothing begins with it
    history.then(act.fail_attempt(history.run(RUN), "root", failure(terminal=True)))
    history.traceparent = second.told()
    history.then(c.RetryTask("root", "once more"))
    history.work("root")
    spans = await history.spans()

    assert [span.remote for span in spans if span.name == "run"] == [(first,), (second,)]
    assert {span.remote for span in spans if span.name != "run"} == {()}
    linked = [span.get("links") for span in told_spans(otlp_json(spans)) if span["name"] == "run"]
    assert linked == [
        [{"traceId": f"{1:032x}", "spanId": f"{2:016x}"}],
        [{"traceId": f"{3:032x}", "spanId": f"{4:016x}"}],
    ]


async def test_a_header_that_is_not_well_formed_is_not_written_on_and_decides_nothing() -> None:
    plain, odd = Traced(), Traced()
    odd.traceparent = "00-zz"
    for history in (plain, odd):
        history.send(RUN, start(task("root")))
    assert [record.value for record in odd.records] == [record.value for record in plain.records]
    assert not odd.records[0].headers


async def test_a_run_that_is_reopened_without_end_is_linked_to_so_many_callers_and_no_more() -> None:
    history = started()
    for number in range(MAX_CALLERS + 3):
        history.traceparent = None
        history.then(act.submit_outcome(history.run(RUN), "root", blocked("ask Ann")))
        history.traceparent = Parent(number + 1, 1, True).told()
        history.then(c.ResolveBlock("root", "asked"))
    history.then(c.CancelRun("enough"))
    assert len(only(await history.spans(), "run").remote) == MAX_CALLERS


async def test_a_task_that_is_superseded_ends_and_its_replacement_names_it() -> None:
    history = started(start(task("first"), task("last", depends_on=("first",)), roots=("last",)))
    history.then(c.SupersedeTask("first", task("better")))
    history.work("better")
    history.work("last")
    spans = await history.spans()

    first, better = only(spans, "task work", task_id="first"), only(spans, "task work", task_id="better")
    assert (first.attributes["dagbok.status"], names(first)) == ("superseded", ["task.superseded"])
    assert better.links == (first.span_id,)


async def test_of_events_without_end_only_the_first_are_kept() -> None:
    history = started()
    for number in range(MAX_NOTES + 5):
        history.then(c.RejectAttempt("root", 1, f"process-{number}"))
    history.work("root")
    root = only(await history.spans(), "task work")

    assert len(root.notes) == MAX_NOTES
    assert root.attributes["dagbok.events_left_out"] == 5


def test_nothing_is_kept_of_what_has_ended() -> None:
    history = started()
    history.work("root")
    fold = SpanFold()
    for record in history.records:
        seal, body = split_value(record.value) or pytest.fail("no commit")
        for _ in fold.apply(seal, decode_body(body, seal.codec, seal.raw_size)):
            open_tasks = [len(run.tasks) for run in fold.runs.values()]
            assert max(open_tasks, default=0) <= 1
    assert fold.runs == {}


def test_a_run_that_is_not_sampled_costs_nothing() -> None:
    history = started()
    history.work("root")
    fold = SpanFold(lambda trace: trace != trace_id(RUN))
    for record in history.records:
        seal, body = split_value(record.value) or pytest.fail("no commit")
        assert list(fold.apply(seal, decode_body(body, seal.codec, seal.raw_size))) == []
        assert fold.runs == {}


async def test_every_history_gives_connected_traces_that_only_grow() -> None:
    for seed in range(scale(10, 200)):
        history = random_history(seed, 150)
        log, earlier = await history.log(), await random_history(seed, Random(seed).randrange(150)).log()
        for run in history.state.runs.values():
            spans = [span async for span in stored_spans(log, 0, run.run)]
            before = [span async for span in stored_spans(earlier, 0, run.run)]
            assert spans[: len(before)] == before
            check_tree(spans, closed=run.status in CLOSED_RUN)


def check_tree(spans: list[Span], *, closed: bool) -> None:
    """Every span once, in its time; of a run that is closed every parent is there, and the parts of the run."""
    ids = {span.span_id: span for span in spans}
    assert len(ids) == len(spans)
    assert all(span.start_ms <= span.end_ms for span in spans)
    if not closed:
        return
    below = [span for span in spans if span.parent_id is not None]
    assert [span.name for span in spans if span.parent_id is None] == ["run"]
    assert all(ids[span.parent_id or 0].start_ms <= span.start_ms for span in below)
