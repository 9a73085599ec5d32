"""The history of the second golden log: branches, repair, amendments, policies and budgets, with every event and every
value that came with them."""

from __future__ import annotations

from typing import Final

from dagbok.events.run import commands as c
from dagbok.testing import (
    CLAIM,
    Limits,
    TaskLimits,
    Usage,
    act,
    blocked,
    candidate,
    decompose,
    failure,
    pin,
    start,
    task,
    when,
)
from tests.support.logbuilder import LogBuilder

VERIFIERS: Final = {
    "check": pin(version="2.1", digest="ab12"),
    "proof": pin(assurance="formal", digest="cd34"),
    "judge": pin("decomposition", digest="ef56"),
}


def history() -> LogBuilder:
    """Four runs: one that branches, one that is mended, one that is short of budget, one whose time is up."""
    log = LogBuilder()
    _branches(log)
    _mended(log)
    _short(log)
    log.void(b"no commit")
    _late(log)
    return log


def _done(log: LogBuilder, run: str, *tasks: str, outputs: dict[str, int | str] | None = None) -> None:
    for id in tasks:
        usage = Usage(3, "0.000000000000000001")
        log.send(run, act.submit_outcome(log.run(run), id, candidate(id, outputs=dict(outputs or {})), usage=usage))
        log.send(run, act.submit_verdict(log.run(run), id, "pass", usage=Usage(1)))


def _branches(log: LogBuilder) -> None:
    review = when("review", "/decision", "approve", {"kind": ["a", 1.0, True, None]})
    small = (when("review", "/parts", 1, op="ge"), when("review", "/parts", 9, op="lt"))
    tasks = (
        task("review", contract={"ü": 1}),
        task("ship", depends_on=("review",), when=(review,), limits=TaskLimits(10, "0.5", 4_096, 8)),
        task("rework", depends_on=("review",), when=(when("review", "/decision", "approve", op="not_in"), *small)),
        task("notify", depends_on=("ship", "rework")),
        task("never", depends_on=("rework",)),
    )
    log.send("branches", start(*tasks, verifiers=VERIFIERS, limits=Limits(max_cost="12.50", max_context_bytes=10_000)))
    _done(log, "branches", "review", outputs={"decision": "approve", "parts": 3})
    log.void(log.records[0].value)
    child = task("part", depends_on=("review",), when=(when("review", "/parts", 2, op="le"),))
    asked = decompose(child, task("whole"), reuse=("review",), composition_contract={"all": ["part", "whole"]})
    log.send("branches", act.submit_outcome(log.run("branches"), "ship", asked))
    _done(log, "branches", "whole", "ship", "notify")


def _mended(log: LogBuilder) -> None:
    tasks = (
        task("plan", verifier="check", child_verifiers=("check", "proof"), priority=2),
        task("judged", proposal_verifier="judge"),
        task("a"),
        task("b", depends_on=("a",)),
    )
    log.send("mended", start(*tasks, verifiers=VERIFIERS, failure_policy="fail_fast", max_decompositions=2))
    run = log.run("mended")
    log.send("mended", act.submit_outcome(run, "plan", decompose(task("c1"), task("c2", verifier="proof"))))
    log.send("mended", act.submit_outcome(run, "judged", decompose(task("weak", verifier="check"))))
    log.send("mended", act.submit_outcome(run, "c1", decompose(task("of-c1", child_verifiers=("check",)))))
    log.send("mended", act.fail_attempt(run, "a", failure("it broke", terminal=True), usage=Usage(7, "0.25")))
    log.send("mended", c.AmendRun({"check": pin(version="2.2", digest="ab13")}, "continue_independent", 4, 3, "better"))
    log.send("mended", c.RetryTask("a", "the disk is empty again"))
    log.send("mended", act.submit_outcome(run, "a", candidate(1)))
    log.send("mended", c.AmendRun({"check": pin(version="2.3", digest="ab14")}))
    log.send("mended", act.fail_attempt(run, "a", failure("no answer"), usage=Usage(2)))
    log.now_ms = run.tasks["a"].due_ms
    log.send("mended", act.fire_timer(run, "backoff", "a"))
    log.send("mended", act.submit_verdict(run, "a", "pass"))
    log.send("mended", c.SupersedeTask("plan", task("plan-2", depends_on=("c2",)), run.graph_revision))
    log.send("mended", act.submit_verdict(run, "judged", "pass"))
    log.send("mended", c.CancelTask("judged", "nobody asked for it"))
    _done(log, "mended", "c2", "plan-2", "b")
    log.send("mended", c.SupersedeTask("judged", task("judged-2")))
    _done(log, "mended", "judged-2")


def _short(log: LogBuilder) -> None:
    own = TaskLimits(40, "0.5")
    limits = Limits(max_tokens=100, max_cost="9.75", max_artifact_bytes=64, max_total_artifact_bytes=200)
    log.send("short", start(task("a", limits=own), task("b", limits=own), task("d", limits=own), limits=limits))
    run = log.run("short")
    log.send("short", act.start_attempt(run, "a"))
    log.now_ms += 60_000
    log.send("short", act.fire_timer(run, "lease", "a"))
    log.send("short", act.start_attempt(run, "b", claim=CLAIM))
    log.send("short", act.release_attempt(run, "b", usage=Usage(30)))
    log.send("short", c.SetLimits(Limits(max_tokens=400, max_cost="9.75", max_artifact_bytes=64)))
    log.send("short", act.submit_outcome(run, "a", candidate("x" * 100), usage=Usage(5)))
    log.send("short", act.submit_outcome(run, "b", blocked(), usage=Usage(6, "0.1")))
    for _ in range(3):
        run_again = act.submit_outcome(run, "d", decompose(task("e"), expected_graph_revision=9), usage=Usage(1))
        log.send("short", run_again)
        if run.tasks["d"].status == "backoff":
            log.now_ms = run.tasks["d"].due_ms
            log.send("short", act.fire_timer(run, "backoff", "d"))
    _done(log, "short", "d")


def _late(log: LogBuilder) -> None:
    log.send("late", start(task("a"), task("b"), limits=Limits(max_wall_ms=3_600_000)))
    run = log.run("late")
    log.send("late", act.submit_outcome(run, "a", candidate(1)))
    log.now_ms = act.deadline_ms(run, "wall")
    log.send("late", act.fire_timer(run, "wall"))
    log.send("late", c.SetLimits(Limits(max_wall_ms=7_200_000)))
    log.send("late", c.CancelTask("b"))
    log.send("late", c.PauseRun("later"))
