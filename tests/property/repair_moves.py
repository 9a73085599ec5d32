"""Random runs with conditions, budgets, policies and repair: small graphs, limits so low that they are met, and at each
step a command that the present state may take."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

import msgspec

from dagbok.events.run import commands as c
from dagbok.events.run.values import Claim, Condition, Limits, OutcomeData, Spec, TaskLimits, Usage, VerdictWord
from dagbok.projections.task_graph.state import CLOSED_RUN, RunState, TaskNode
from dagbok.testing import act, blocked, candidate, decompose, failure, pin, start, task, when

VERIFIERS: Final = {
    "check": pin(),
    "both": pin("candidate", "decomposition"),
    "person": pin(assurance="human_review"),
    "formal": pin(assurance="formal"),
    "judge": pin("decomposition"),
}
COSTS: Final = ("0", "0.1", "0.30", "1")
VERDICTS: Final[tuple[VerdictWord, ...]] = ("pass", "pass", "pass", "pass", "fail", "error", "inconclusive")


def started(random: Random) -> c.StartRun:
    """A run of up to five tasks."""
    ids = [f"t{place}" for place in range(random.randint(1, 5))]
    tasks = [_task(random, id, ids[:place]) for place, id in enumerate(ids)]
    return start(
        *tasks,
        roots=tuple(random.sample(ids, random.randint(1, min(2, len(ids))))),
        verifiers=VERIFIERS,
        failure_policy=random.choice(("continue_independent", "continue_independent", "fail_fast")),
        max_depth=2,
        max_decompositions=2,
        limits=Limits(
            max_tasks=25,
            max_edges=60,
            max_open=random.choice((1, 2, 8)),
            max_attempts=2,
            max_lost=2,
            max_verifier_errors=2,
            backoff_base_ms=100,
            backoff_max_ms=400,
            max_pending_verifications=random.choice((1, 2, 50, 50)),
            max_tokens=random.choice((None, None, 30, 100)),
            max_cost=random.choice((None, None, "1.5", "5")),
            max_wall_ms=random.choice((None, None, 500_000)),
            max_artifact_bytes=random.choice((40, 2**20, 2**20)),
            max_context_bytes=random.choice((None, None, None, 60)),
        ),
    )


def move(random: Random, run: RunState, fresh: Callable[[], str]) -> tuple[c.RunCommand, int]:
    """A command that fits the state, with the log time before which it would be too early (0: at any time). `fresh`
    gives task ids that are not in use."""
    active = [run.tasks[id] for id in run.active]
    resting = [node for node in run.tasks.values() if node.status == "backoff"]
    choices: list[Callable[[], tuple[c.RunCommand, int]]] = [lambda: (_by_person(random, run, fresh), 0)]
    if active:
        choices += [lambda: _by_agent(random, run, random.choice(active), fresh)] * 9
    if resting:
        choices += [lambda: _timer(run, random.choice(resting))] * 4
    if run.limits.max_wall_ms is not None and random.randint(0, 15) == 0:
        choices = [lambda: (c.FireTimer("wall", "", 0, 0), act.deadline_ms(run, "wall"))]
    return random.choice(choices)()


def _timer(run: RunState, node: TaskNode) -> tuple[c.RunCommand, int]:
    return act.fire_timer(run, "backoff", node.id), node.due_ms


def _by_agent(random: Random, run: RunState, node: TaskNode, fresh: Callable[[], str]) -> tuple[c.RunCommand, int]:
    attempt = node.attempt
    assert attempt is not None
    usage = Usage(random.randint(0, 12), random.choice(COSTS))
    claim = attempt.claim or Claim(random.choice(("p1", "p2")), 1, "n")
    word = random.choice(("start", "fail", "release", "lost", "gone", *["result"] * 7))
    if word == "start" and attempt.claim is None:
        return act.start_attempt(run, node.id, claim=claim), 0
    if word == "fail":
        terminal = random.randint(0, 3) == 0
        return act.fail_attempt(run, node.id, failure(terminal=terminal), claim=claim, usage=usage), 0
    if word == "release":
        return act.release_attempt(run, node.id, claim=claim, usage=usage), 0
    if word == "lost" and attempt.claim is not None:
        kind: act.TimerKind = "timeout" if attempt.timeout_at_ms is not None and random.random() < 0.5 else "lease"
        return act.fire_timer(run, kind, node.id), act.deadline_ms(run, kind, node.id)
    if word == "gone" and attempt.claim is not None:
        return c.ReportGone(attempt.claim.process), 0
    if attempt.kind == "verify":
        return act.submit_verdict(run, node.id, random.choice(VERDICTS), claim=claim, usage=usage), 0
    return act.submit_outcome(run, node.id, _outcome(random, run, fresh), claim=claim, usage=usage), 0


def _outcome(random: Random, run: RunState, fresh: Callable[[], str]) -> OutcomeData:
    word = random.choice(("candidate", "candidate", "candidate", "tasks", "tasks", "blocked"))
    if word == "blocked":
        return blocked()
    if word == "candidate":
        return candidate("x" * random.choice((1, 30, 50)), outputs={"go": random.randint(0, 2)})
    known = [node.id for node in run.tasks.values() if node.status in ("verified", "skipped") or random.random() < 0.1]
    ids = [fresh() for _ in range(random.choice((0, 1, 2, 3)))]
    tasks = [_task(random, id, [*known, *ids[:place]]) for place, id in enumerate(ids)]
    reuse = random.sample(known, min(len(known), random.choice((0, 0, 1))))
    revision = random.choice((None, None, None, run.graph_revision, run.graph_revision - 1))
    return decompose(*tasks, reuse=tuple(reuse), composition_contract=len(ids), expected_graph_revision=revision)


def _by_person(random: Random, run: RunState, fresh: Callable[[], str]) -> c.RunCommand:
    some = random.choice(sorted(run.tasks))
    choices: list[Callable[[], c.RunCommand]] = [
        lambda: c.CancelTask(some),
        lambda: c.SupersedeTask(some, _task(random, fresh(), list(run.tasks)), random.choice((None, 1))),
        lambda: c.SupersedeTask(some, _task(random, fresh(), list(run.tasks))),
        lambda: _amended(random),
        lambda: _raised(random, run),
        lambda: c.ResumeRun() if run.status == "paused" else c.PauseRun(),
    ]
    if run.failed:
        choices += [lambda: c.RetryTask(random.choice(sorted(run.failed)))] * 3
    if run.blocked:
        choices += [lambda: c.ResolveBlock(random.choice(sorted(run.blocked)))] * 3
    if run.status in CLOSED_RUN and run.status != "failed":
        choices = [lambda: c.RetryTask(some)]
    if random.randint(0, 60) == 0:
        choices = [c.CancelRun]
    return random.choice(choices)()


def _amended(random: Random) -> c.AmendRun:
    pins = {"check": pin(version=random.choice(("1", "2")))}
    return c.AmendRun(
        verifiers=random.choice(({}, pins)),
        failure_policy=random.choice((None, "fail_fast", "continue_independent")),
        max_decompositions=random.choice((None, 1, 3)),
    )


def _raised(random: Random, run: RunState) -> c.SetLimits:
    limits = run.limits
    more = {
        "max_open": limits.max_open + random.randint(0, 1),
        "max_tokens": None if limits.max_tokens is None else limits.max_tokens + random.randint(0, 30),
        "max_cost": random.choice((limits.max_cost or "4", None)),
        "max_wall_ms": None if limits.max_wall_ms is None else limits.max_wall_ms + random.choice((0, 500_000)),
        "max_context_bytes": random.choice((limits.max_context_bytes, None)),
    }
    return c.SetLimits(msgspec.structs.replace(limits, **more))


def _task(random: Random, id: str, others: list[str]) -> Spec:
    deps = random.sample(others, min(len(others), random.choice((0, 1, 1, 2))))
    return task(
        id,
        depends_on=tuple(deps),
        when=tuple(_condition(random, dep) for dep in deps if random.random() < 0.5),
        join=random.choice(("any", "any", "all")),
        verifier=random.choice(("check", "check", "check", "both", "formal", "person")),
        proposal_verifier=random.choice((None, None, "judge")),
        child_verifiers=random.choice((None, None, None, None, ("check", "judge", "both"))),
        priority=random.randint(-1, 1),
        timeout_ms=random.choice((None, 30_000)),
        limits=random.choice((None, TaskLimits(10, "0.5"), TaskLimits(0, "0.3"), TaskLimits(context_artifacts=1))),
    )


def _condition(random: Random, dep: str) -> Condition:
    if random.random() < 0.5:
        return when(dep, "/go", random.randint(0, 2), op=random.choice(("lt", "le", "gt", "ge")))
    return when(dep, "/go", random.randint(0, 2), op=random.choice(("in", "not_in")))
