"""The workload of a user: tasks as they wrote them, with their own workers and verifiers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from dagbok.agents.workers.context import Candidate, TaskContext
from dagbok.agents.workers.definitions import Registry, Verifier, Worker
from dagbok.agents.workers.encode import encode_spec
from dagbok.events.ids import derive
from dagbok.events.run.commands import ResumeRun, RunCommand, StartRun
from dagbok.events.run.values import FailurePolicy, Limits, Pinned, SecurityContext
from dagbok.events.specs import Outcome, TaskSpec, Verdict
from dagbok.projections.task_graph.state import RunState
from dagbok.results import RunResult
from dagbok.testing.simulation.plan import Hands, RunPlan

POOL = "default"

Check = Callable[[RunResult], None]


class GivenWorkload:
    """One run of the given tasks."""

    def __init__(
        self,
        tasks: Sequence[TaskSpec],
        registry: Registry,
        check: Check | None,
        *,
        limits: Limits,
        failure_policy: FailurePolicy,
        max_depth: int,
        max_decompositions: int,
    ) -> None:
        self._definitions: tuple[Worker | Verifier, ...] = (
            *registry.workers.values(),
            *registry.verifiers.values(),
        )
        self._check = check
        self._lease_s = min([task.lease_s for task in tasks])
        specs = [encode_spec(task, derived_id=derive("run", index), pool=POOL) for index, task in enumerate(tasks)]
        needed = {dep for spec in specs for dep in spec.depends_on}
        self._start = StartRun(
            tasks=tuple(specs),
            roots=tuple(spec.id for spec in specs if spec.id not in needed),
            pinned=Pinned(registry.pins(), failure_policy, max_depth, max_decompositions),
            limits=limits,
            context=SecurityContext(user="ann"),
        )
        self.pools: Sequence[str] = tuple({spec.pool: None for spec in specs} | {POOL: None})

    def runs(self, random: Random) -> Sequence[RunPlan]:
        """See `Workload.runs`."""
        return [RunPlan("run", self._start)]

    def registry(self, seed: int, process: str, hands: Hands) -> Registry:
        """See `Workload.registry`: the functions take their time, before they begin and before anybody hears of it."""
        random = Random(f"{seed}/{process}/pace")
        registry = Registry()
        registry.add(*[_paced(definition, hands, random, self._lease_s) for definition in self._definitions])
        return registry

    def act(self, run: RunState, random: Random, *, calm: bool) -> RunCommand | None:
        """See `Workload.act`: nobody resolves anything, so a run that blocks stays so."""
        return ResumeRun() if run.status == "paused" else None

    def is_session(self, before: Any, value: Any) -> bool:
        """See `Workload.is_session`: only the functions themselves know."""
        return True

    def check(self, result: RunResult) -> None:
        """See `Workload.check`."""
        if self._check is not None:
            self._check(result)


def _paced(definition: Worker | Verifier, hands: Hands, random: Random, lease_s: float) -> Worker | Verifier:
    async def work(task: TaskContext) -> Outcome:
        assert isinstance(definition, Worker)
        await hands.linger(random, lease_s)
        hands.tell(f"runs {definition.key} for {task.task_id}, epoch {task.epoch}")
        returned = definition.function(task)
        outcome = await returned if inspect.isawaitable(returned) else returned
        await hands.linger(random, lease_s / 4)
        return outcome

    async def judge(candidate: Candidate, task: TaskContext) -> bool | Verdict:
        assert isinstance(definition, Verifier)
        await hands.linger(random, lease_s)
        hands.tell(f"runs {definition.key} for {task.task_id}, epoch {task.epoch}")
        returned = definition.function(candidate, task)
        return await returned if inspect.isawaitable(returned) else returned

    return replace(definition, function=work) if isinstance(definition, Worker) else replace(definition, function=judge)
