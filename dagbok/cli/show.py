"""`dagbok ls` and `dagbok show`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import msgspec

from dagbok.agents.hosting.presence import look_at_owner
from dagbok.cli import say
from dagbok.cli.advised import advised
from dagbok.cli.budget import raising
from dagbok.cli.options import Output, Place, settle
from dagbok.cli.ownership import owner_of, who_goes_on
from dagbok.cli.reading import Reading, reading
from dagbok.cli.text import columns, counts, duration, moment, plural, short
from dagbok.cli.tree import Seen, run_counts, run_lines, tree_lines
from dagbok.cli.unserved import nobody_serves, unserved_pools
from dagbok.cli.waits import waits_in
from dagbok.events.codes import Code
from dagbok.events.log.clock import system_ms
from dagbok.projections.queries import TaskTree
from dagbok.projections.task_graph.state import RunStatus, TaskStatus
from dagbok.projections.views.graph.rows import AttemptRow, RunRow, TaskRow
from dagbok.settings import Settings

NAMED = 10
TRACED = 3
NOTE = "--note '…'"
GOING_ON: tuple[RunStatus, ...] = ("running",)
"""In these a run goes on by itself, if somebody decides."""


def list_runs(status: RunStatus | None, limit: int, place: Place | None, output: Output | None) -> int:
    """Print the newest runs."""
    settings, how = settle(place, output)
    runs = asyncio.run(_list(settings, status, limit))
    if how.json:
        say.out_json(runs)
        return 0
    if not runs:
        for line in asyncio.run(_nothing(settings, status)):
            say.note(line)
        return 0
    head = ["RUN", "STATUS", "STARTED", "TOOK", "TASKS"]
    for line in columns([head, *[_row(run) for run in runs]]):
        say.out(line)
    if any(run.status in GOING_ON for run in runs):
        for line in who_goes_on(settings):
            say.note(line)
    return 0


def show_run(name: str, whole: bool, place: Place | None, output: Output | None) -> int:
    """Print a run as a tree, or everything about its tasks and attempts as JSON."""
    settings, how = settle(place, output)
    asyncio.run(_show(settings, name, whole, how.json))
    return 0


def print_run(found: Reading, run: RunRow, *, whole: bool = False, timed: bool = True) -> None:
    """The tree of a run and its counts; `timed`: with how long it took."""

    def attempts(task: str) -> Sequence[AttemptRow]:
        return found.queries.attempts(found.tenant, found.project, run.run, task)

    for line in run_lines(run, timed=timed):
        say.out(line)
    say.out()
    whose = (found.tenant, found.project, run.run)
    trees = found.queries.task_tree(*whose)
    waits = waits_in(found, run, _by_id(trees).get, at_once=whole)
    # Where nobody decides either, that is said once, and not with every task.
    unserved = unserved_pools(found, run) if look_at_owner(found.folder).state != "none" else frozenset[str]()
    seen = Seen(attempts, found.queries.edges(*whose, conditional=True), waits, unserved)
    for line in tree_lines(trees, seen, whole=whole):
        say.out(line)
    say.out()
    say.out(f"{plural(run.tasks, 'task')}: {counts(run_counts(run).items())}")


def advice_for(found: Reading, run: RunRow) -> Sequence[str]:
    """The commands that let the run go on, and those that say why a task failed."""

    def how(command: str, *words: str) -> str:
        return advised(found.settings, command, short(run.run), *words)

    lines = [f"paused; to go on: {how('resume')}"] if run.status == "paused" else []
    lines += budget_advice(found, run)
    if run.blocked:
        lines += [f"to go on: {how('resolve', short(task), NOTE)}" for task in _tasks(found, run, "blocked")]
    if run.failed:
        failed = _tasks(found, run, "failed")
        lines += [f"traceback: {how('show', '--task', short(task))}" for task in failed[:TRACED]]
        lines += [f"to try again: {how('retry', short(task))}" for task in failed[:TRACED]]
    if run.blocked or run.failed:
        lines.append(f"to put another task in the place of one: {how('supersede', 'TASK', 'FILE')}")
    if run.status in GOING_ON:
        lines += who_goes_on(found.settings)
        pools = found.queries.pools(found.tenant, found.project, run.run)
        lines += nobody_serves(unserved_pools(found, run), found.settings, pools)
    return lines


def _by_id(trees: Sequence[TaskTree]) -> Mapping[str, TaskRow]:
    found: dict[str, TaskRow] = {}
    pending = list(trees)
    while pending:
        tree = pending.pop()
        found[tree.task.task] = tree.task
        pending += tree.children
    return found


def budget_advice(found: Reading, run: RunRow) -> Sequence[str]:
    """The commands that raise the budget that has run out; nothing when none has."""
    if run.code != Code.BUDGET_EXHAUSTED:
        return ()
    limits = advised(found.settings, "limits", short(run.run))
    how = f"{limits} shows what the run may use, and raises it by NAME=NUMBER"
    return (*raising(found.settings, run, _unaffordable(found, run)), how)


def _unaffordable(found: Reading, run: RunRow) -> TaskRow | None:
    """The task that a run out of budget would work on next."""
    named = msgspec.json.decode(run.named_tasks or "[]", type=list[str])
    return found.queries.get_task(found.tenant, found.project, run.run, named[0]) if named else None


def _tasks(found: Reading, run: RunRow, status: TaskStatus) -> Sequence[str]:
    rows = found.queries.list_tasks(found.tenant, found.project, run.run, status=status, limit=NAMED)
    return [row.task for row in rows]


async def _nothing(settings: Settings, status: RunStatus | None) -> Sequence[str]:
    """What to say when there is no run: whoever looks in the wrong place is told where there are some."""
    said = "no runs" if status is None else f"no {status} runs"
    lines = [f"{said} of {settings.tenant}/{settings.project}"]
    async with reading(settings) as found:
        lines[0] += f" in {found.where}"
        places = found.queries.projects_with_runs(limit=NAMED + 1)
    others = [f"--tenant {tenant} --project {project}" for tenant, project in places[:NAMED]]
    if places and (settings.tenant, settings.project) not in places:
        lines.append(f"there are runs with {'; '.join(others)}{'; …' if len(places) > NAMED else ''}")
    return lines


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
        owner = owner_of(settings)
        whose = (found.tenant, found.project, run.run)
        say.out_json(
            {
                "run": run,
                "tasks": found.queries.list_tasks(*whose),
                "edges": found.queries.edges(*whose),
                "attempts": found.queries.attempts(*whose),
                "artifacts": found.queries.artifacts(*whose, state="published"),
                "owner": {"state": owner.state, "pid": owner.pid or None, "silent_s": owner.silent_s},
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
