"""Short histories that several specifications begin with or go on by."""

from __future__ import annotations

from dagbok.events.run.values import Spec
from dagbok.testing import Limits, Scenario, TaskLimits, candidate, given, start, task


def done(run: Scenario, *tasks: str) -> Scenario:
    """Each of the tasks is worked on and passes its review, in this order."""
    for id in tasks:
        run = run.submits(id, candidate(id)).judges(id, "pass")
    return run


def limited(*tasks: Spec, tokens: int | None = None, cost: str | None = None, **other: int) -> Scenario:
    """A run of these tasks with a budget."""
    return given().when(start(*tasks, limits=Limits(max_tokens=tokens, max_cost=cost, **other)))


def reserving(id: str, tokens: int = 0, cost: str = "0", priority: int = 0) -> Spec:
    """A task whose attempts reserve so much."""
    return task(id, limits=TaskLimits(tokens, cost), priority=priority)


def fail_fast(*tasks: Spec) -> Scenario:
    """A run of these tasks that ends at its first failure."""
    return given().when(start(*tasks, failure_policy="fail_fast"))
