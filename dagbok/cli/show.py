"""`dagbok ls` and `dagbok show`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from dagbok.cli import say
from dagbok.cli.options import Output, Place, settle
from dagbok.cli.reading import Reading, reading
from dagbok.cli.text import columns, counts, duration, moment, plural, short
from dagbok.cli.tree import run_counts, run_lines, tree_lines
from dagbok.events.log.clock import system_ms
from dagbok.projections.task_graph.state import RunStatus
from dagbok.projections.views.graph.rows import AttemptRow, RunRow
from dagbok.settings import Settings


def list_runs(status: RunStatus | None, limit: int, place: Place | None, output: Output | None) -> int:
    """Print the newest runs."""
    settings, how = settle(place, output)
    runs = asyncio.run(_list(settings, status, limit))
    if how.json:
        say.out_json(runs)
        return 0
    if not runs:
        say.note(f"no runs of {settings.tenant}/{settings.project} in {settings.data}")
        return 0
    head = ["RUN", "STATUS", "STARTED", "TOOK", "TASKS"]
    for line in columns([head, *[_row(run) for run in runs]]):
        say.out(line)
    return 0


def show_run(name: str, whole: bool, place: Place | None, output: Output | None) -> int:
    """Print a run as a tree, or everything about its tasks and attempts as JSON."""
    settings, how = settle(place, output)
    asyncio.run(_show(settings, name, whole, how.json))
    return 0


def print_run(found: Reading, run: RunRow, *, whole: bool = False) -> None:
    """The tree of a run and its counts."""

    def attempts(task: str) -> Sequence[AttemptRow]:
        return found.queries.attempts(found.tenant, found.project, run.run, task)

    for line in run_lines(run):
        say.out(line)
    say.out()
    for line in tree_lines(found.queries.task_tree(found.tenant, found.project, run.run), attempts, whole=whole):
        say.out(line)
    say.out()
    say.out(f"{plural(run.tasks, 'task')}: {counts(run_counts(run).items())}")


def advice_for(found: Reading, run: RunRow) -> Sequence[str]:
    """The commands that let the run go on."""
    if run.status == "paused":
        return [f"paused; to go on: dagbok resume {short(run.run)}"]
    if not run.blocked:
        return []
    blocked = found.queries.list_tasks(found.tenant, found.project, run.run, status="blocked", limit=10)
    return [f"to go on: dagbok resolve {short(run.run)} {short(task.task)} --note '…'" for task in blocked]


async def _list(settings: Settings, status: RunStatus | None, limit: int) -> list[RunRow]:
    async with reading(settings) as found:
        return found.queries.list_runs(found.tenant, found.project, limit=limit, status=status)


async def _show(settings: Settings, name: str, whole: bool, as_json: bool) -> None:
    async with reading(settings) as found:
        run = found.find_run(name)
        if not as_json:
            print_run(found, run, whole=whole)
            for line in advice_for(found, run):
                say.out(line)
            return
        whose = (found.tenant, found.project, run.run)
        say.out_json(
            {
                "run": run,
                "tasks": found.queries.list_tasks(*whose),
                "edges": found.queries.edges(*whose),
                "attempts": found.queries.attempts(*whose),
                "artifacts": found.queries.artifacts(*whose, state="published"),
            }
        )


def _row(run: RunRow) -> list[str]:
    end = run.closed_ms if run.closed_ms is not None else system_ms()
    return [
        short(run.run),
        run.status,
        moment(run.started_ms),
        duration(end - run.started_ms),
        f"{run.tasks}: {counts(run_counts(run).items())}",
    ]
