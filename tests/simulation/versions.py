"""Two versions of the deciding code at once: every other owner runs the other one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dagbok.agents.scheduler import execute
from dagbok.agents.scheduler.decide import By, decide
from dagbok.events.run import commands as c
from dagbok.events.run.events import Event
from dagbok.projections.task_graph.state import RunState
from dagbok.testing.simulation.loop import here


@contextmanager
def two_versions() -> Iterator[None]:
    """Owners with an even number cancel a run where the others pause it, and resolve blocks with a note of their
    own."""
    before = execute.decide
    execute.decide = _decide_by_version  # type: ignore[attr-defined]
    try:
        yield
    finally:
        execute.decide = before  # type: ignore[attr-defined]


def _decide_by_version(run: RunState, command: c.RunCommand, by: By) -> Iterator[Event]:
    try:
        number = int(here().name.partition("scheduler.")[2] or 1)
    except LookupError:
        number = 1
    if number % 2 == 0:
        if isinstance(command, c.PauseRun):
            command = c.CancelRun(command.reason)
        elif isinstance(command, c.ResolveBlock):
            command = c.ResolveBlock(command.task, f"{command.note} (2)")
    return decide(run, command, by)
