"""Rules broken on purpose: the machine has to find each of them, or it proves nothing.

Each mutant takes one rule away, by a patch of the place where it stands. The machine runs as it is, with fixed numbers,
until it finds that something is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappush
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from dagbok.agents.scheduler.decide import (
    amendments,
    branch,
    conditions,
    decompositions,
    outcomes,
    proceed,
    repair,
    retry,
    timers,
)
from dagbok.agents.scheduler.execute import StateBroken
from dagbok.events.errors import Refused
from dagbok.events.run import events as e
from dagbok.events.run.amounts import NOTHING
from dagbok.events.run.limits import asked
from dagbok.projections.task_graph import evolve, graph, nodes
from dagbok.projections.task_graph.state import At, RunState, TaskNode
from tests.property.run_seen import Seen
from tests.property.test_run_machine import RunMachine
from tests.support.scale import scale

UNTIL_FOUND = settings(
    max_examples=200,
    stateful_step_count=60,
    deadline=None,
    database=None,
    phases=(Phase.generate,),
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)

SEEDS = 40
"""So many times 200 histories, unless one of them shows it."""


class Observed(RunMachine):
    """The same machine; what it comes past under a mutant does not count."""

    seen = Seen()


class NeverRaised(Refused):
    """What no rule raises elsewhere."""


def _nothing(*_args: object, **_more: object) -> Iterator[e.Event]:
    return iter(())


def _skip_when_one_edge_is_not_taken(run: RunState, node: TaskNode) -> None:
    if any(run.tasks[dep].status == "skipped" for dep in node.deps) and not node.decompositions:
        run.skipping.append(node.id)
    else:
        nodes.wake(run, node)


def _run_when_one_edge_is_taken(run: RunState, node: TaskNode) -> None:
    if node.wanted:
        nodes.make_ready(run, node)
    else:
        nodes.wake(run, node)


def _is_its_own_child(_run: RunState, node: TaskNode, parent: TaskNode) -> bool:
    return node.created_by == parent.id


def _take_over_without_conditions(run: RunState, old: TaskNode, new: TaskNode) -> None:
    kept = {id: run.tasks[id].conditions for id in old.dependents}
    _TAKE_OVER(run, old, new)
    for id, as_before in kept.items():
        run.tasks[id].conditions = as_before


def _retry_with_old_failures(run: RunState, event: e.TaskRetried, at: At) -> None:
    failures = run.tasks[event.task].failures
    _RETRIED(run, event, at)
    run.tasks[event.task].failures = failures


def _ready_by_age_alone(run: RunState, node: TaskNode) -> None:
    nodes.set_status(run, node, "ready")
    heappush(run.ready, (0, node.order, node.id))


_TAKE_OVER = graph._take_over
_RETRIED: Callable[[RunState, Any, At], None] = evolve._FOLDS[e.TaskRetried]

MUTANTS: dict[str, tuple[object, str, object]] = {
    "a task is skipped when one of its edges is not taken": (graph, "wake", _skip_when_one_edge_is_not_taken),
    "one edge is enough where all are asked for": (graph, "wake", _run_when_one_edge_is_taken),
    "a task is never skipped": (graph, "wake", nodes.make_ready),
    "reservations are never returned": (nodes, "minus", lambda used, _less: used),
    "lost attempts cost nothing": (timers, "charged", lambda _attempt: NOTHING),
    "closed attempts cost nothing": (branch, "charged", lambda _attempt: NOTHING),
    "budgets hold back nothing": (proceed, "may_work", lambda _run, _node: True),
    "wall time has no end": (proceed, "out_of_time", lambda _run, _now_ms: False),
    "artifacts may have any size": (outcomes, "artifact_breach", lambda _run, _artifacts: None),
    "any worker can be handed anything": (proceed, "overflow", lambda _run, _node: None),
    "conditions stay with the task that was superseded": (graph, "_take_over", _take_over_without_conditions),
    "what is needed elsewhere is cancelled too": (branch, "_is_needed_outside", lambda *_: False),
    "a run is never reopened by who mends it": (repair, "reopen", _nothing),
    "a run stays blocked when its limits are raised": (amendments, "reopen", _nothing),
    "a budget begins below what is used of it": (amendments, "overdrawn", lambda *_: []),
    "limits that are not named change too": (amendments, "_wanted", lambda now, command: asked(now, command.limits)),
    "reviews go on under a verifier that changed": (amendments, "close", _nothing),
    "children may name any verifier": (decompositions, "check_children", lambda *_: None),
    "tasks may wait for each other": (decompositions, "check_no_circle", lambda *_: None),
    "a race is never forgiven": (decompositions, "Outdated", NeverRaised),
    "whatever breaks a rule in a graph that changed is forgiven": (decompositions, "Outdated", Refused),
    "what a task that is gone had left goes on for nobody": (branch, "_belongs", _is_its_own_child),
    "a blocked run does not end at a failure of before": (amendments, "fails_fast", lambda _run: False),
    "what is not there is null": (conditions, "ABSENT", None),
    "no task is poison": (timers, "after_loss", _nothing),
    "backoff grows by nothing": (retry, "backoff_ms", lambda *_: 0),
    "priorities are ignored": (nodes, "make_ready", _ready_by_age_alone),
}


HIDDEN = (
    "what is needed elsewhere is cancelled too",
    "children may name any verifier",
    "a task is skipped when one of its edges is not taken",
)
"""Found after some hundreds of histories: tried by `make test-all` alone."""


@pytest.mark.parametrize("broken", [name for name in MUTANTS if name not in HIDDEN or scale(0, 1)])
def test_the_machine_finds_a_rule_that_is_broken(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, name, instead = MUTANTS[broken]
    monkeypatch.setattr(where, name, instead)
    _is_found()


def test_the_machine_finds_a_retry_that_keeps_old_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    folds: dict[type[e.Event], Callable[[RunState, Any, At], None]] = {e.TaskRetried: _retry_with_old_failures}
    monkeypatch.setattr(evolve, "_FOLDS", {**evolve._FOLDS, **folds})
    _is_found()


def _is_found() -> None:
    with pytest.raises((AssertionError, StateBroken)):
        _look_for_it()


def _look_for_it() -> None:
    """By seeds: which histories hypothesis takes by itself changes with every line of the machine."""
    for number in range(SEEDS):
        run_state_machine_as_test(seed(number)(Observed), settings=UNTIL_FOUND)
