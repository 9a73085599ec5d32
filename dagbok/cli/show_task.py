"""`dagbok show RUN --task TASK`: one task, its attempts, and what its functions raised."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from dagbok.cli import say
from dagbok.cli.journal import events_of
from dagbok.cli.options import Output, Place, settle
from dagbok.cli.reading import reading
from dagbok.cli.skipped import why_skipped
from dagbok.cli.text import clean, duration, moment, short
from dagbok.cli.unserved import AT_WORK, nobody_serves, unserved_pools
from dagbok.cli.waits import waits_in
from dagbok.events.run.events import AttemptFailed
from dagbok.events.run.values import Failure
from dagbok.projections.views.graph.rows import AttemptRow, RunRow, TaskRow
from dagbok.settings import Settings


def show_task(name: str, task: str, place: Place | None, output: Output | None) -> int:
    """Print one task with its attempts and their tracebacks; the same as JSON."""
    settings, how = settle(place, output)
    asyncio.run(_show(settings, name, task, how.json))
    return 0


async def _show(settings: Settings, name: str, task: str, as_json: bool) -> None:
    async with reading(settings) as found:
        run = found.find_run(name)
        row = found.find_task(run, task)
        attempts = found.queries.attempts(found.tenant, found.project, run.run, row.task)
        failures = [*events_of(found, run, AttemptFailed, row.task)]
        skipped = why_skipped(found, run, row)
        waits = waits_in(found, run, partial(found.queries.get_task, found.tenant, found.project, run.run))(row)
        idle = [row.pool] if row.status in AT_WORK and row.pool in unserved_pools(found, run) else []
        how = nobody_serves(idle, settings, found.queries.pools(found.tenant, found.project, run.run))
    if as_json:
        say.out_json({"task": row, "attempts": attempts, "failures": failures})
        return
    why = [*([waits] if waits else []), *skipped]
    for line in _lines(run, row, attempts, {failed.epoch: failed.failure for failed in failures}, why):
        say.out(line)
    for line in how:
        say.out(line)


def _lines(
    run: RunRow, task: TaskRow, attempts: Sequence[AttemptRow], failures: Mapping[int, Failure], why: Sequence[str]
) -> Iterator[str]:
    yield f"task {task.task}  {task.status}  of run {short(run.run)}"
    yield f"goal: {clean(task.goal, 1_000)}"
    yield f"worker {clean(task.worker)}, verifier {clean(task.verifier)}, pool {clean(task.pool)}"
    yield from why
    if task.superseded_by is not None:
        yield f"in its place: {task.superseded_by}"
    number = 0
    for attempt in attempts:
        number += attempt.kind == "work"
        yield ""
        yield _attempt(attempt, number)
        if (failure := failures.get(attempt.epoch)) is not None:
            yield from _raised(failure)


def _attempt(attempt: AttemptRow, number: int) -> str:
    """`attempt 2: work  failed …`, `attempt 2: review by check  verdict pass …`. A review has the number of the attempt
    that it judges."""
    if attempt.kind == "work":
        parts = [f"attempt {number}: work", attempt.status]
    else:
        judged = attempt.status == "succeeded" and attempt.outcome is not None
        parts = [f"attempt {number}: review by {clean(attempt.handler)}"]
        parts.append(f"verdict {attempt.outcome}" if judged else attempt.status)
    parts.append(moment(attempt.opened_ms))
    if attempt.started_ms is not None and attempt.closed_ms is not None:
        parts.append(duration(attempt.closed_ms - attempt.started_ms))
    outcome = attempt.outcome if attempt.kind == "work" else None
    why = ": ".join(part for part in (outcome, attempt.code, attempt.message) if part)
    return "  ".join([*parts, clean(why, 300)]).rstrip()


def _raised(failure: Failure) -> Iterator[str]:
    for line in (failure.traceback or f"{failure.type}: {failure.message}").splitlines():
        indented = len(line) - len(line.lstrip(" "))
        yield "  " + " " * indented + clean(line, 400)
