"""What an accepted command of people does to the model: it pauses, ends or amends a run, or mends its graph."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dagbok.events.run import commands as c
from dagbok.events.run import events as e
from tests.property.run_model import CAN_GO_ON, FINAL, Model
from tests.property.run_model_branch import doomed
from tests.property.run_model_edges import check_added
from tests.property.run_model_rules import amended, with_named
from tests.property.run_model_task import Task

OF_PEOPLE = (
    c.PauseRun,
    c.ResumeRun,
    c.CancelRun,
    c.SetLimits,
    c.AmendRun,
    c.ResolveBlock,
    c.RetryTask,
    c.CancelTask,
    c.SupersedeTask,
)


def ordered(run: Model, command: c.RunCommand, events: Sequence[e.Event]) -> None:
    """The command, one of `OF_PEOPLE`, is accepted with these events."""
    match command:
        case c.PauseRun():
            run.word = "paused"
        case c.ResumeRun():
            run.word = "running"
        case c.CancelRun():
            for id, status in run.statuses().items():
                if status not in FINAL and status != "failed":
                    _cancel(run, run.tasks[id])
            run.word = "cancelled"
        case c.SetLimits(limits=limits, named=named):
            run.limits = with_named(run.limits, limits, named)
            if run.of_limits:
                run.reopen()
        case c.AmendRun():
            _amend(run, command)
        case _:
            _mend(run, command, events)


def _mend(run: Model, command: c.RunCommand, events: Sequence[e.Event]) -> None:
    match command:
        case c.ResolveBlock(task=id):
            task = run.tasks[id]
            task.told, task.verifier_errors, task.lost = "", 0, 0
        case c.RetryTask(task=id):
            task = run.tasks[id]
            task.told = ""
            task.failures = task.lost = task.verifier_errors = task.conflicts = 0
        case c.CancelTask(task=id):
            for gone in [run.tasks[id], *(run.tasks[other] for other in doomed(run, run.tasks[id]))]:
                _cancel(run, gone)
        case c.SupersedeTask():
            _supersede(run, run.tasks[command.task], command, events)
    run.reopen()


def _cancel(run: Model, task: Task) -> None:
    run.close(task)
    run.changes += 1
    task.stop("cancelled")


def _amend(run: Model, command: c.AmendRun) -> None:
    before = run.pinned
    after = amended(before, command)
    for task in run.tasks.values():
        if task.attempt is not None and task.attempt.kind == "verify":
            key = run.judge(task)
            if before.verifiers[key] != after.verifiers[key]:
                run.close(task)
    run.pinned = after
    if (run.word == "failed" and CAN_GO_ON & set(run.statuses().values())) or run.fails_fast():
        run.reopen()


def _supersede(run: Model, old: Task, command: c.SupersedeTask, events: Sequence[e.Event]) -> None:
    spec = command.replacement
    for id in doomed(run, old, spec.depends_on):
        _cancel(run, run.tasks[id])
    _cancel(run, old)
    old.told = "superseded"
    for task in run.tasks.values():
        task.deps = [spec.id if dep == old.spec.id else dep for dep in task.deps]
        task.when = [
            msgspec.structs.replace(each, task=spec.id) if each.task == old.spec.id else each for each in task.when
        ]
    new = run.add(spec, old.parent)
    new.took, new.root, old.root = old.spec.id, old.root, False
    run.revision += 1
    check_added(run, events)
