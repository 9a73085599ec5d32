"""The commands that change a run: names, options and help. What each does is in a module of its own, imported when it
is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Group, Parameter

from dagbok.cli.limit_options import LimitChange
from dagbok.cli.options import MAIN_OPTIONS, Imports, Output, Place, RunName

STEER = Group("Steer", sort_key=3)

TaskName = Annotated[str, Parameter(help="Id of the task, or its first characters.")]
Reason = Annotated[str, Parameter(help="Kept in the log.")]
Note = Annotated[str, Parameter(help="Reaches the worker.")]
Policy = Literal["continue_independent", "fail_fast"]


def add_to(app: App) -> None:
    """Register them."""
    for command in (pause, resume, cancel, resolve, retry, supersede, amend, limits):
        app.command(command, group=STEER)


def pause(run: RunName, /, *, reason: Reason = "", place: Place | None = None, output: Output | None = None) -> int:
    """Start nothing more in a run until it is resumed."""
    from dagbok.cli.control import pause_run

    return pause_run(run, reason, place, output)


def resume(run: RunName, /, *, reason: Reason = "", place: Place | None = None, output: Output | None = None) -> int:
    """Let a paused run go on."""
    from dagbok.cli.control import resume_run

    return resume_run(run, reason, place, output)


def cancel(
    run: RunName,
    /,
    *,
    task: Annotated[str | None, Parameter(help="End this branch alone: the task and what was made below it.")] = None,
    reason: Reason = "",
    place: Place | None = None,
    output: Output | None = None,
) -> int:
    """End a run for good, or one branch of it: what is open is cancelled."""
    from dagbok.cli.control import cancel_run

    return cancel_run(run, task, reason, place, output)


def resolve(
    run: RunName, task: TaskName, /, *, note: Note = "", place: Place | None = None, output: Output | None = None
) -> int:
    """Let a blocked task run again: what it waits for is done."""
    from dagbok.cli.control import resolve_block

    return resolve_block(run, task, note, place, output)


def retry(
    run: RunName, task: TaskName, /, *, note: Note = "", place: Place | None = None, output: Output | None = None
) -> int:
    """Let a failed task run again, with all its attempts; a run that failed goes on."""
    from dagbok.cli.control import retry_task

    return retry_task(run, task, note, place, output)


def supersede(
    run: RunName,
    task: TaskName,
    file: Annotated[Path | None, Parameter(help="Python or JSON file with the replacement.")] = None,
    /,
    *options: Annotated[str, Parameter(allow_leading_hyphen=True, help=MAIN_OPTIONS)],
    spec: Annotated[str | None, Parameter(help="The replacement as JSON instead of a file.")] = None,
    revision: Annotated[int | None, Parameter(help="Only if the graph is still at this revision.")] = None,
    place: Place | None = None,
    output: Output | None = None,
) -> int:
    """Put another task in the place of one that is not verified.

    FILE is a Python file whose main(…) returns the replacement, or a JSON file
    with it. Those that wait for the old task wait for the new one. From JSON
    it goes to the pool of the old task; from a Python file to the pool of
    that file, which has to be served too: "dagbok up --import FILE".

    For example:
      dagbok supersede last analysis smaller.py --depth 2
      dagbok supersede last analysis --spec '{"goal": "…", "worker": "w", "verifier": "v"}'
    """
    from dagbok.cli.supersede import supersede_task

    return supersede_task(run, task, file, options, spec, revision, place, output)


def amend(
    run: RunName,
    /,
    *,
    imports: Imports = None,
    verifier: Annotated[
        list[str] | None, Parameter(negative="", help="Of the files, only these; all by default; repeatable.")
    ] = None,
    failure_policy: Annotated[
        Policy | None, Parameter(help="Whether what does not depend on a failed task goes on.")
    ] = None,
    max_depth: Annotated[int | None, Parameter(help="How deep decompositions may go below a root.")] = None,
    max_decompositions: Annotated[int | None, Parameter(help="How often one task may decompose.")] = None,
    reason: Reason = "",
    place: Place | None = None,
    output: Output | None = None,
) -> int:
    """Bind a run to verifiers as files have them now, or to another policy.

    Reviews that run under a verifier that changes begin anew; what is verified
    stays so.

    For example:
      dagbok amend last --import flow.py --reason 'a stricter check'
    """
    from dagbok.cli.amend import amend_run

    return amend_run(
        run, imports or [], verifier or [], (failure_policy, max_depth, max_decompositions), reason, place, output
    )


def limits(
    run: RunName,
    /,
    *changes: LimitChange,
    place: Place | None = None,
    output: Output | None = None,
) -> int:
    """Show what a run may use, or set it: "dagbok limits last max_tokens=20000".

    A limit that stands only grows. One that the run does not have may be set
    at any time, not below what is used and reserved. A run that is blocked by
    a limit goes on when it is raised, and a process serves it.
    """
    from dagbok.cli.limits import limits as show_or_set

    return show_or_set(run, changes, place, output)
