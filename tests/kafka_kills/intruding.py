"""What one tenant may try with the ids of another: every command that there is, and every question to the tables."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from dagbok.events.canonical import sha256_hex
from dagbok.events.run import commands as c
from dagbok.events.run.values import NULL, ArtifactItem, Claim, Failure, Limits, Report
from dagbok.projections.queries import Queries
from dagbok.testing.make import candidate, start, task


def commands(name: str, epoch: int) -> Mapping[str, c.RunCommand]:
    """One of each type, about the task `name`, as whoever holds its attempt `epoch` would send it."""
    claim = Claim("p", 1, "n")
    part = ArtifactItem("session", sha256_hex(b"mine"), 4, "application/json", b"mine")
    report = Report("candidate", "pass", "yes", "1", "d", "formal", "i", (name,), NULL)
    told: tuple[c.RunCommand, ...] = (
        start(task(name)),
        c.PauseRun("mine now"),
        c.ResumeRun(),
        c.CancelRun("mine now"),
        c.SetLimits(Limits()),
        c.AmendRun(failure_policy="fail_fast"),
        c.ResolveBlock(name),
        c.RetryTask(name),
        c.SupersedeTask(name, start(task("mine")).tasks[0]),
        c.CancelTask(name),
        c.StartAttempt(name, epoch, claim, "client/mine"),
        c.RenewLeases((c.Renewal(name, epoch, claim),)),
        c.SuspendSession(name, epoch, claim, 1, part),
        c.SubmitOutcome(name, epoch, claim, "i", candidate("mine")),
        c.FailAttempt(name, epoch, claim, Failure("retryable", "tool", "ValueError", "no")),
        c.ReleaseAttempt(name, epoch, claim),
        c.RejectAttempt(name, epoch, "p"),
        c.SubmitVerdict(name, epoch, claim, report),
        c.FireTimer("lease", name, epoch, 1),
        c.ReportGone("p"),
    )
    return {type(command).__name__: command for command in told}


def seen_of(queries: Queries, tenant: str, run: str, name: str) -> Mapping[str, Any]:
    """What every question to the tables tells this tenant of a run: of one that is not his, nothing."""
    told: dict[str, Any] = {}
    for question, method in inspect.getmembers(queries, inspect.ismethod):
        wanted = inspect.signature(method).parameters
        if "tenant" not in wanted or question.startswith("_"):
            continue
        values = {"tenant": tenant, "project": "docs", "run": run, "task": name}
        needed = {each for each, how in wanted.items() if how.default is how.empty} | ({"run"} & wanted.keys())
        rows = method(**{each: values[each] for each in needed})
        if "run" not in wanted:
            rows = [row for row in rows if row.tenant != tenant or getattr(row, "run", "") == run]
        told[question] = rows
    return told
