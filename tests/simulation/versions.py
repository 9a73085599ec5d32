"""Two versions of the deciding code at once: every other owner runs the other one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import pytest

from dagbok.agents.scheduler import execute
from dagbok.agents.scheduler.decide import By, decide
from dagbok.events.run import commands as c
from dagbok.events.run import events as e
from dagbok.projections.task_graph.state import RunState
from dagbok.testing.simulation.loop import here

LONGER_MS = 700


@contextmanager
def two_versions() -> Iterator[None]:
    """Owners with an even number cancel a run where the others pause it, give longer leases and put off less."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execute, "decide", _decide_by_version)
        yield


def _decide_by_version(run: RunState, command: c.RunCommand, by: By) -> Iterator[e.Event]:
    if not _is_second():
        yield from decide(run, command, by)
        return
    if isinstance(command, c.PauseRun):
        command = c.CancelRun(command.reason)
    for event in decide(run, command, by):
        if isinstance(event, e.AttemptStarted):
            event = msgspec.structs.replace(event, lease_until_ms=event.lease_until_ms + LONGER_MS)
        elif isinstance(event, e.TaskBackedOff):
            event = msgspec.structs.replace(event, due_ms=event.due_ms - 1)
        yield event


def _is_second() -> bool:
    try:
        number = here().name.partition("scheduler.")[2]
    except LookupError:
        return False
    return number.isdigit() and int(number) % 2 == 0
