"""The commands: names, options and help. What each does is in a module of its own, imported when it is called."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Group, Parameter

from dagbok.cli.options import Output, Place
from dagbok.cli.trace import trace

EPILOGUE = """
RUN is an id, its first digits, or "last". Examples:

  dagbok run examples/docs_audit.py --input docs
  dagbok show last
  dagbok resolve last analysis --note 'the file is there now'

Exit status:
  0  done; the run succeeded          5  the data folder is busy
  1  the run failed or was cancelled  6  the log, tables or disk failed
  2  wrong usage, or a broken file    70 a fault of dagbok itself
  3  refused, or not found            130 interrupted (143 by SIGTERM)
  4  the run is blocked

Errors are one line on standard error, DAGBOK-CODE: what happened — what to
do; with --json they are objects. docs/cli.md has all commands and settings.
"""

RUNS = Group("Run", sort_key=1)
LOOK = Group("Look", sort_key=2)
STEER = Group("Steer", sort_key=3)

Status = Literal["running", "paused", "blocked", "succeeded", "failed", "cancelled"]
RunName = Annotated[str, Parameter(help='Id, its first digits, or "last".')]
Flag = Parameter(negative="", show_default=False)
Imports = Annotated[
    list[str] | None,
    Parameter(name="--import", negative="", help="Module or file with further workers and verifiers; repeatable."),
]
Reason = Annotated[str, Parameter(help="Kept in the log.")]


@cache
def build() -> App:
    """The application with all commands."""
    app = App(
        name="dagbok",
        help="Verified, dynamic task graphs of many agents, kept in a log.",
        help_epilogue=EPILOGUE,
        help_format="plaintext",
        version=_version,
    )
    app.command(run, group=RUNS)
    app.command(up, group=RUNS)
    for look in (ls, show, events, trace):
        app.command(look, group=LOOK)
    app.command(_artifact_app())
    app.command(pause, group=STEER)
    app.command(resume, group=STEER)
    app.command(cancel, group=STEER)
    app.command(resolve, group=STEER)
    app.command(limits, group=STEER)
    app.register_install_completion_command()
    return app


def _artifact_app() -> App:
    artifact = App(name="artifact", group=LOOK, help="List and fetch what tasks published.")
    artifact.command(artifact_get, name="get")
    artifact.command(artifact_ls, name="ls")
    artifact.command(artifact_collect, name="collect")
    return artifact


def _version() -> str:
    from importlib.metadata import version

    return f"dagbok {version('dagbok')}"


def run(
    file: Path,
    /,
    *options: Annotated[str, Parameter(allow_leading_hyphen=True, help="Options of main in FILE.")],
    new: Annotated[bool, Flag] = False,
    imports: Imports = None,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="", show_default=False)] = False,
    place: Place | None = None,
    output: Output | None = None,
) -> int:
    """Run the task that main(…) in FILE returns, to its end.

    The parameters of main are options of this command too: "dagbok run FILE
    --help" shows them. Where one has the name of an option of dagbok, write
    it behind "--".

    Stopped in whatever way, the same command goes on where it was. After a
    run has succeeded, failed or been cancelled, it starts the next one. What
    the roots publish is written to files in DATA/output/RUN.

    Examples:
      dagbok run examples/docs_audit.py --input docs
      dagbok run flow.py --data /var/lib/flow -- --data table.csv
      dagbok run flow.py --json --new

    Parameters
    ----------
    file
        Python file with `main(…) -> TaskSpec` (or several) and its workers and verifiers.
    new
        Start another run although the last one is unfinished.
    quiet
        No progress and no tree: only how it ended.
    """
    from dagbok.cli.run import run_file

    return run_file(file, options, imports or [], new=new, quiet=quiet, place=place, output=output)


def up(*, imports: Imports = None, place: Place | None = None, output: Output | None = None) -> int:
    """Serve a data folder until SIGTERM or Ctrl-C.

    Open runs go on. Each imported file is served in the pool that "dagbok
    run" gives it; the pool "default" has what all files declare. Logs are
    JSON unless standard error is a terminal.

    Example:
      dagbok up --import examples/docs_audit.py --data /var/lib/dagbok
    """
    from dagbok.cli.up import serve

    return serve(imports or [], place, output)


def ls(
    *, status: Status | None = None, limit: int = 50, place: Place | None = None, output: Output | None = None
) -> int:
    """List runs, the newest first.

    Parameters
    ----------
    status
        Only those that have it.
    limit
        At most so many.
    """
    from dagbok.cli.show import list_runs

    return list_runs(status, limit, place, output)


def show(
    run: RunName = "last",
    /,
    *,
    all: Annotated[bool, Flag] = False,
    place: Place | None = None,
    output: Output | None = None,
) -> int:
    """Show a run as a tree: states, attempts, durations, and what is wrong.

    Parameters
    ----------
    all
        Every task; long lists are shortened otherwise.
    """
    from dagbok.cli.show import show_run

    return show_run(run, all, place, output)


def events(
    run: RunName = "last",
    /,
    *,
    follow: Annotated[bool, Parameter(name=["--follow", "-f"], negative="", show_default=False)] = False,
    after: int = 0,
    place: Place | None = None,
    output: Output | None = None,
) -> int:
    """Print the events of a run; with --json one object per line.

    Parameters
    ----------
    follow
        Wait for more until the run is over.
    after
        Only events with a number above this one.
    """
    from dagbok.cli.events import print_events

    return print_events(run, follow, after, place, output)


def artifact_get(
    run: RunName,
    task: str,
    name: str | None = None,
    /,
    *,
    out: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    place: Place | None = None,
    output: Output | None = None,
) -> int:
    """Write a published artifact to standard output or a file.

    Parameters
    ----------
    task
        Id of the task, or its first characters.
    name
        "result", or the only one, if left out.
    out
        File to write.
    """
    from dagbok.cli.artifacts import get

    return get(run, task, name, out, place, output)


def artifact_ls(run: RunName = "last", /, *, place: Place | None = None, output: Output | None = None) -> int:
    """List the published artifacts of a run."""
    from dagbok.cli.artifacts import list_artifacts

    return list_artifacts(run, place, output)


def pause(run: RunName, /, *, reason: Reason = "", place: Place | None = None, output: Output | None = None) -> int:
    """Start nothing more in a run until it is resumed."""
    from dagbok.cli.control import pause_run

    return pause_run(run, reason, place, output)


def resume(run: RunName, /, *, reason: Reason = "", place: Place | None = None, output: Output | None = None) -> int:
    """Let a paused run go on."""
    from dagbok.cli.control import resume_run

    return resume_run(run, reason, place, output)


def cancel(run: RunName, /, *, reason: Reason = "", place: Place | None = None, output: Output | None = None) -> int:
    """End a run for good: what is open is cancelled."""
    from dagbok.cli.control import cancel_run

    return cancel_run(run, reason, place, output)


def resolve(
    run: RunName, task: str, /, *, note: str = "", place: Place | None = None, output: Output | None = None
) -> int:
    """Let a blocked task run again: what it waits for is done.

    Parameters
    ----------
    task
        Id of the task, or its first characters.
    note
        Reaches the worker.
    """
    from dagbok.cli.control import resolve_block

    return resolve_block(run, task, note, place, output)


def limits(
    run: RunName,
    /,
    *changes: Annotated[str, Parameter(help="NAME=NUMBER; none: show them.")],
    place: Place | None = None,
    output: Output | None = None,
) -> int:
    """Show what a run may use, or raise it: "dagbok limits last max_tasks=200000"."""
    from dagbok.cli.limits import limits as show_or_raise

    return show_or_raise(run, changes, place, output)


def artifact_collect(
    *,
    remove: Annotated[bool, Flag] = False,
    grace_days: float = 7.0,
    place: Place | None = None,
    output: Output | None = None,
) -> int:
    """Count stored artifacts that nothing refers to.

    Parameters
    ----------
    remove
        Remove them.
    grace_days
        Only what is older; at least an hour.
    """
    from dagbok.cli.orphans import collect_orphans

    return collect_orphans(grace_days, remove, place, output)
