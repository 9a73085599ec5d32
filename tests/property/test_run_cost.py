"""What a command costs does not grow with its run: not in calls, and not in what C code does within them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import FrameType

import pytest

from dagbok.agents.scheduler.decide import By
from dagbok.agents.scheduler.execute import execute
from dagbok.events.run import commands as c
from dagbok.events.run.values import Limits
from dagbok.projections.task_graph.state import RunState
from dagbok.testing import act, blocked, candidate, failure, start, task

FEW, MANY = 100, 10_000
OPEN, DONE, MEASURED = 20, 40, 10

Act = Callable[[RunState, str], c.RunCommand]


def _submits(run: RunState, task: str) -> c.RunCommand:
    return act.submit_outcome(run, task, candidate(1))


def _passes(run: RunState, task: str) -> c.RunCommand:
    return act.submit_verdict(run, task, "pass")


COMMANDS: dict[str, tuple[tuple[Act, ...], Act]] = {
    "a claim": ((), lambda run, task: act.start_attempt(run, task)),
    "a candidate": ((), _submits),
    "a pass": ((_submits,), _passes),
    "a fail": ((_submits,), lambda run, task: act.submit_verdict(run, task, "fail")),
    "an error of a verifier": ((_submits,), lambda run, task: act.submit_verdict(run, task, "error")),
    "a failure": ((), lambda run, task: act.fail_attempt(run, task, failure())),
    "a last failure": ((), lambda run, task: act.fail_attempt(run, task, failure(terminal=True))),
    "a block": ((), lambda run, task: act.submit_outcome(run, task, blocked())),
    "a hand-back": ((), lambda run, task: act.release_attempt(run, task)),
}
"""What comes before the measured command for each task, and the command."""


class _Grown:
    """A run with one task that waits for all others: some are verified, some are open, the rest waits for room."""

    def __init__(self, tasks: int) -> None:
        self.run = RunState(run="r", tenant="t", project="p")
        self.offset = 0
        names = [f"t{i}" for i in range(tasks)]
        self.do(
            start(*(task(name) for name in names), task("end", depends_on=tuple(names)), limits=Limits(max_open=OPEN))
        )
        for _ in range(DONE):
            name = next(iter(self.run.active))
            self.do(_submits(self.run, name))
            self.do(_passes(self.run, name))

    def do(self, command: c.RunCommand) -> None:
        self.offset += 1
        execute(self.run, command, By(f"c{self.offset}", "user:test", 0), 0, self.offset)

    def prepared(self, before: tuple[Act, ...], act: Act) -> list[c.RunCommand]:
        """The commands of some tasks, each made when it is its turn to be decided."""
        names = list(self.run.active)[:MEASURED]
        for step in before:
            for name in names:
                self.do(step(self.run, name))
        return [act(self.run, name) for name in names]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_costs_the_same_in_a_run_of_ten_thousand_tasks_as_in_one_of_a_hundred(command: str) -> None:
    """In calls; and in CPU time, the best of several, which is far below what a walk over 10,000 tasks would take."""
    few, many = _Grown(FEW), _Grown(MANY)
    commands = few.prepared(*COMMANDS[command]), many.prepared(*COMMANDS[command])
    assert _calls(many, commands[1][:1]) <= _calls(few, commands[0][:1]) + 5
    assert min(_cpu_s(many, one) for one in commands[1][1:]) < 5 * min(_cpu_s(few, one) for one in commands[0][1:])


def _calls(grown: _Grown, commands: list[c.RunCommand]) -> int:
    calls = 0

    def count(frame: FrameType, event: str, arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        for command in commands:
            grown.do(command)
    finally:
        sys.setprofile(None)
    return calls


def _cpu_s(grown: _Grown, command: c.RunCommand) -> float:
    began_s = time.process_time()
    grown.do(command)
    return time.process_time() - began_s
