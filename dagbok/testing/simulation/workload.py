"""Random runs: graphs, decompositions, verdicts, failures, poison, blocks, and clients that change their minds.

What a function does is drawn from the seed, the task and the attempt, so it does not depend on which process runs it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

from dagbok.agents.workers.context import Candidate, TaskContext
from dagbok.agents.workers.definitions import Registry, Verifier, Worker, verifier, worker
from dagbok.agents.workers.terminal import Terminal
from dagbok.events.canonical import digest
from dagbok.events.run import commands as c
from dagbok.events.run.values import Limits, Spec, TaskLimits
from dagbok.events.specs import Outcome, TaskSpec, Usage, Verdict
from dagbok.projections.task_graph.state import CLOSED_RUN, RunState
from dagbok.results import RunResult
from dagbok.testing.make import pin, start, task, when
from dagbok.testing.simulation.plan import Hands, RunPlan

LEASE_S: Final = 6.0
POISON: Final = "poison"
TALKATIVE: Final = 0.4
"""So many tasks have a worker that puts down its session."""
LIMITS: Final = Limits(
    max_tasks=40,
    max_open=4,
    max_attempts=3,
    max_lost=3,
    max_verifier_errors=2,
    backoff_base_ms=200,
    backoff_max_ms=2_000,
)
NO_CONFIG: Final = digest(None)
VERIFIERS: Final = {
    "check": pin("candidate", digest=NO_CONFIG),
    "judge": pin("decomposition", digest=NO_CONFIG),
    "both": pin("candidate", "decomposition", digest=NO_CONFIG),
}


class RandomWorkload:
    """One to three runs of a few tasks each."""

    pools: Sequence[str] = ("default",)

    def runs(self, random: Random) -> Sequence[RunPlan]:
        """See `Workload.runs`."""
        count = random.choice((1, 1, 2, 3))
        return [_run(f"run-{number}", random, most=8 // count + 1) for number in range(1, count + 1)]

    def registry(self, seed: int, process: str, hands: Hands) -> Registry:
        """See `Workload.registry`: now and then one that lacks a key, but never in the first slot."""
        functions, registry = _Functions(seed, hands), Registry()
        definitions: list[Worker | Verifier] = [
            worker("work", concurrency=4)(functions.work),
            worker("quick", pure=True)(functions.quick),
            verifier("check", version="1", judges="candidate")(functions.judge),
            verifier("judge", version="1", judges="decomposition")(functions.judge),
            verifier("both", version="1", judges=("candidate", "decomposition"), timeout_s=LEASE_S)(functions.judge),
        ]
        random = Random(f"{seed}/{process}/keys")
        if not hands.calm and not process.startswith("worker-1.") and random.random() < 0.2:
            definitions.pop(random.randrange(len(definitions)))
        registry.add(*definitions)
        return registry

    def act(self, run: RunState, random: Random, *, calm: bool) -> c.RunCommand | None:
        """See `Workload.act`."""
        if calm:
            return _mend(run)
        return random.choice(ACTS)(run, random)

    def is_session(self, before: Any, value: Any) -> bool:
        """See `Workload.is_session`: every turn once, in order, of attempts that follow each other."""
        numbers, epochs = [turn[0] for turn in value], [turn[1] for turn in value]
        grew = value[: len(before or [])] == (before or [])
        return grew and numbers == list(range(len(value))) and epochs == sorted(epochs)

    def check(self, result: RunResult) -> None:
        """Any end will do."""


def _run(name: str, random: Random, most: int) -> RunPlan:
    ids = [f"t{number}" for number in range(1, random.randint(1, most) + 1)]
    tasks = [_task(id, random, ids[:place]) for place, id in enumerate(ids)]
    limits = {field: getattr(LIMITS, field) for field in Limits.__struct_fields__}
    limits |= {
        "max_pending_verifications": random.choice((1, 3, 1_000)),
        "max_wall_ms": random.choice((None, None, None, 30_000)),
        "max_tokens": random.choice((None, None, 2_000)),
        "max_cost": random.choice((None, None, "3.5")),
    }
    command = start(
        *tasks,
        verifiers=VERIFIERS,
        failure_policy=random.choice(("continue_independent", "continue_independent", "fail_fast")),
        max_decompositions=random.choice((1, 2)),
        max_depth=2,
        limits=Limits(**limits),
    )
    acts = sorted(round(40 * random.random() ** 2, 3) for _ in range(random.choice((0, 0, 1, 3, 6))))
    return RunPlan(name, command, round(10 * random.random() ** 3, 3), tuple(acts))


def _task(id: str, random: Random, before: Sequence[str]) -> Spec:
    deps = tuple(random.sample(before, min(len(before), random.choice((0, 1, 1, 2)))))
    conditions = tuple(when(dep, "/n", *random.choice(((0,), (0, 1), (9,)))) for dep in deps if random.random() < 0.15)
    return task(
        id,
        depends_on=deps,
        when=conditions,
        join=random.choice(("any", "any", "any", "all")),
        goal=POISON if random.random() < 0.05 else f"do {id}",
        worker=random.choice(("work", "work", "quick")),
        verifier=random.choice(("check", "check", "both")),
        proposal_verifier=random.choice((None, None, "judge")),
        priority=random.randrange(3),
        timeout_ms=random.choice((None, None, 15_000)),
        lease_ms=int(LEASE_S * 1000),
        limits=random.choice((None, None, TaskLimits(tokens=300, cost="0.5"))),
    )


class _Functions:
    def __init__(self, seed: int, hands: Hands) -> None:
        self._seed, self._hands = seed, hands

    async def work(self, context: TaskContext) -> Outcome:
        random = Random(f"{self._seed}/{context.run_id}/{context.task_id}")
        if random.random() < TALKATIVE:
            await self._talk(context, Random(f"{self._seed}/{context.epoch}").randrange(4))
        return await self.quick(context)

    async def quick(self, context: TaskContext) -> Outcome:
        random = Random(f"{self._seed}/{context.run_id}/{context.task_id}/{context.epoch}")
        await self._hands.linger(random, LEASE_S)
        if context.goal == POISON and random.random() < 0.8:
            await self._hands.vanish()
        chance, usage = random.random(), Usage(tokens=random.randrange(400), cost=random.choice(("0", "0.25")))
        if chance < 0.08:
            raise RuntimeError(f"attempt {context.epoch} broke")
        if chance < 0.10:
            raise Terminal("this cannot be done")
        if chance < 0.12:
            return None  # type: ignore[return-value]
        if chance < 0.16:
            return Outcome.blocked("ask Ann", usage=usage)
        if chance < 0.34 and context.phase == "solve":
            return self._decomposed(context, random, usage)
        large = {"large": b"x" * 40_000} if random.random() < 0.03 else {}
        for dependency in context.dependencies.values():
            dependency.json()
        return Outcome.candidate(
            {"of": context.task_id}, artifacts=large, outputs={"n": random.randrange(2)}, usage=usage
        )

    async def _talk(self, context: TaskContext, turns: int) -> None:
        """Each turn has its number and the attempt that it was said in."""
        said = context.session.load() or []
        for _ in range(turns):
            said.append([len(said), context.epoch, "x" * (20_000 if len(said) % 7 == 3 else 10)])
            await context.session.save(said)
            await asyncio.sleep(0.1)

    def _decomposed(self, context: TaskContext, random: Random, usage: Usage) -> Outcome:
        ids = [f"{context.task_id}.{context.epoch}{letter}" for letter in "abc"[: random.randrange(4)]]
        children = [
            TaskSpec(
                id=id,
                goal=f"do {id}",
                worker=random.choice(("work", "quick", "quick")),
                verifier="check",
                depends_on=tuple(ids[place - 1 : place]) if place and random.random() < 0.5 else (),
                lease_s=LEASE_S,
            )
            for place, id in enumerate(ids)
        ]
        return Outcome.decompose(
            children,
            reuse=("t1",) if random.random() < 0.2 else (),
            expected_graph_revision=context.graph_revision if random.random() < 0.2 else None,
            usage=usage,
        )

    async def judge(self, candidate: Candidate, context: TaskContext) -> bool | Verdict:
        random = Random(f"{self._seed}/{context.run_id}/{context.task_id}/{context.epoch}")
        await self._hands.linger(random, LEASE_S)
        if context.goal == POISON and random.random() < 0.5:
            await self._hands.vanish()
        chance = random.random()
        if chance < 0.78:
            return True
        if chance < 0.88:
            return Verdict.failed({"why": "not good enough"})
        if chance < 0.91:
            return Verdict.inconclusive("cannot tell")
        if chance < 0.96:
            return Verdict.error("the tool is broken")
        if chance < 0.98:
            await asyncio.sleep(3 * LEASE_S)
        raise RuntimeError("the verifier broke")


def _mend(run: RunState) -> c.RunCommand | None:
    if run.status == "paused":
        return c.ResumeRun("on we go")
    if run.blocked:
        return c.ResolveBlock(next(iter(run.blocked)), "done")
    if run.blocked_by:
        return _raised(run)
    return c.RetryTask(next(iter(run.failed))) if run.failed and run.status == "failed" else None


def _raised(run: RunState, random: Random | None = None) -> c.RunCommand:
    limits = {field: getattr(run.limits, field) for field in Limits.__struct_fields__}
    limits |= {"max_open": run.limits.max_open + 1, "max_tokens": None, "max_cost": None, "max_wall_ms": None}
    return c.SetLimits(Limits(**limits))


def _resolved(run: RunState, random: Random) -> c.RunCommand:
    return c.ResolveBlock(random.choice(list(run.blocked) or ["t1"]), random.choice(("", "done")))


def _retried(run: RunState, random: Random) -> c.RunCommand:
    return c.RetryTask(random.choice(list(run.failed) or ["t1"]))


def _superseded(run: RunState, random: Random) -> c.RunCommand:
    old = random.choice(list(run.tasks))
    fresh = task(f"{old}.s{len(run.tasks)}", worker="quick", lease_ms=int(LEASE_S * 1000))
    return c.SupersedeTask(old, fresh, random.choice((None, run.graph_revision)))


def _amended(run: RunState, random: Random) -> c.RunCommand:
    return c.AmendRun(failure_policy=random.choice(("continue_independent", "fail_fast")), reason="a change of mind")


ACTS: Final[tuple[Callable[[RunState, Random], c.RunCommand | None], ...]] = (
    lambda run, random: c.PauseRun("lunch"),
    lambda run, random: c.ResumeRun("on we go"),
    lambda run, random: c.CancelRun("enough") if random.random() < 0.4 and run.status not in CLOSED_RUN else None,
    lambda run, random: c.CancelTask(random.choice(list(run.tasks)), "not needed"),
    _raised,
    _resolved,
    _retried,
    _superseded,
    _amended,
)
"""What clients do while everything goes wrong: one entry for each command of clients."""
