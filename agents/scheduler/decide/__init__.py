"""The decider of runs: `decide(run, command, by) -> events`, plain functions that read nothing but their arguments.

Commands are in `events/run/commands.py`, events in `events/run/events.py`, state and folds in
`projections/task_graph/`.

A decider is a generator. Each event it yields is folded into the state (`evolve`) before it goes on, so what follows
from an event, such as tasks that wake or a run that ends, is read from the state and never computed twice. It refuses
only before its first event: a refused command leaves the state as it was. `docs/adr/` says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dagbok.agents.scheduler.decide import amendments, attempts, outcomes, repair, runs, sessions, timers, verdicts
from dagbok.agents.scheduler.decide.cause import By, Repeated
from dagbok.events.run import commands as c
from dagbok.events.run.events import Event
from dagbok.projections.task_graph.state import RunState

__all__ = ["By", "Repeated", "decide"]


def decide(run: RunState, command: c.RunCommand, by: By) -> Iterator[Event]:
    """The events that `command` causes in `run`.

    Raises `Refused` (with a code) or `Repeated`, always before the first event. The caller folds every event into `run`
    before it asks for the next.
    """
    return _DECIDERS[type(command)](run, command, by)


# Each decider takes the command type of its key; a mapping cannot say so, hence the one Any.
_DECIDERS: dict[type[c.RunCommand], Callable[[RunState, Any, By], Iterator[Event]]] = {
    c.StartRun: runs.start,
    c.PauseRun: runs.pause,
    c.ResumeRun: runs.resume,
    c.CancelRun: runs.cancel,
    c.SetLimits: amendments.set_limits,
    c.AmendRun: amendments.amend,
    c.ResolveBlock: runs.resolve,
    c.RetryTask: repair.retry,
    c.SupersedeTask: repair.supersede,
    c.CancelTask: repair.cancel_task,
    c.StartAttempt: attempts.start,
    c.RenewLeases: attempts.renew,
    c.ReleaseAttempt: attempts.release,
    c.RejectAttempt: attempts.reject,
    c.SuspendSession: sessions.suspend,
    c.FailAttempt: attempts.fail,
    c.SubmitOutcome: outcomes.submit,
    c.SubmitVerdict: verdicts.submit,
    c.FireTimer: timers.fire,
    c.ReportGone: timers.report_gone,
}
