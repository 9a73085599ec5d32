"""The commands: names, options and help. What each does is in a module of its own, imported when it is called."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Group, Parameter
from cyclopts.validators import Number

from dagbok.cli.artifact import add_to as add_artifact
from dagbok.cli.doctor import add_to as add_doctor
from dagbok.cli.layers import add_to as add_layers
from dagbok.cli.letters import add_to as add_letters
from dagbok.cli.limit_options import LimitOptions
from dagbok.cli.options import MAIN_OPTIONS, FolderPlace, Imports, Output, Place, RunName
from dagbok.cli.projections import add_to as add_projections
from dagbok.cli.roles import add_to as add_roles
from dagbok.cli.schema import add_to as add_schema
from dagbok.cli.session import add_to as add_session
from dagbok.cli.steer import add_to as add_steering
from dagbok.cli.topics import add_to as add_topics
from dagbok.cli.trace import trace

EPILOGUE = """
RUN is an id, its first digits, or "last". Examples:

  dagbok run examples/docs_audit.py --input docs
  dagbok show last
  dagbok resolve last analysis --note 'the file is there now'
  dagbok retry last analysis

Exit status:
  0  done; the run succeeded          5  the folder's owner does not answer
  1  the run failed or was cancelled  6  the log, tables or disk failed
  2  wrong usage, or a broken file    70 a fault of dagbok itself
  3  refused, or not found            130 interrupted (143 by SIGTERM)
  4  the run is blocked

Errors are one line on standard error, DAGBOK-CODE: what happened — what to
do; with --json they are objects. docs/cli.md has all commands and settings.
"""

OF_COMMANDS = """
Exit status and errors: dagbok --help. More of this command: docs/cli.md.
"""

RUNS = Group("Run", sort_key=1)
LOOK = Group("Look", sort_key=2)
SERVE = Group("Kafka", sort_key=4)

Status = Literal["running", "paused", "blocked", "succeeded", "failed", "cancelled"]
Flag = Parameter(negative="", show_default=False)


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
    for running in (run, submit, up):
        app.command(running, group=RUNS)
    for look in (ls, show, events, trace):
        app.command(look, group=LOOK)
    add_artifact(app, LOOK)
    add_steering(app)
    add_session(app, LOOK)
    add_letters(app, LOOK)
    add_layers(app, LOOK)
    add_roles(app, SERVE)
    add_topics(app, SERVE)
    add_doctor(app, SERVE)
    add_projections(app, SERVE)
    add_schema(app, SERVE)
    for name in app:
        if not name.startswith("-"):
            app[name].help_epilogue = OF_COMMANDS
    app.register_install_completion_command()
    return app


def _version() -> str:
    from importlib.metadata import version

    return f"dagbok {version('dagbok')}"


def run(
    file: Path,
    /,
    *options: Annotated[str, Parameter(allow_leading_hyphen=True, help=MAIN_OPTIONS)],
    new: Annotated[bool, Flag] = False,
    limits: LimitOptions = None,
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
    run has succeeded, failed or been cancelled, it starts the next one. In a
    second terminal it works on the same run. What the roots publish is written
    to files in DATA/output/RUN.

    For example:
      dagbok run examples/docs_audit.py --input docs
      dagbok run flow.py --data /var/lib/flow -- --data table.csv
      dagbok run flow.py --json --new
      dagbok run agents.py --limit max_tokens=50000 --limit max_cost=2.50

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

    return run_file(file, options, imports or [], new=new, limits=limits or [], quiet=quiet, place=place, output=output)


def submit(
    file: Path,
    /,
    *options: Annotated[str, Parameter(allow_leading_hyphen=True, help=MAIN_OPTIONS)],
    new: Annotated[bool, Flag] = False,
    limits: LimitOptions = None,
    imports: Imports = None,
    place: Place | None = None,
    output: Output | None = None,
) -> int:
    """Start the run that "dagbok run FILE" would, print its id, and leave.

    Whoever serves the data folder does the work: "dagbok up --import FILE",
    or "dagbok run FILE" with the same options, which also shows it.

    For example:
      dagbok submit examples/docs_audit.py --input docs
      dagbok submit agents.py --limit max_tokens=50000
      dagbok events --follow $(dagbok submit flow.py)

    Parameters
    ----------
    file
        Python file with `main(…) -> TaskSpec` (or several) and its workers and verifiers.
    new
        Start another run although the last one is unfinished.
    """
    from dagbok.cli.submit import submit_file

    return submit_file(file, options, imports or [], new=new, limits=limits or [], place=place, output=output)


def up(*, imports: Imports = None, place: FolderPlace | None = None, output: Output | None = None) -> int:
    """Serve a data folder until SIGTERM or Ctrl-C.

    Open runs go on. Each imported file is served in the pool that "dagbok
    run" gives it; the pool "default" has what all files declare. Several of
    them on one data folder share the work; when the one that decides ends,
    another one decides. Logs are JSON unless standard error is a terminal.

    For example:
      dagbok up --import examples/docs_audit.py --data /var/lib/dagbok
    """
    from dagbok.cli.up import serve

    return serve(imports or [], place, output)


def ls(
    *,
    status: Status | None = None,
    limit: Annotated[int, Parameter(validator=Number(gte=1))] = 50,
    place: Place | None = None,
    output: Output | None = None,
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
    task: str | None = None,
    place: Place | None = None,
    output: Output | None = None,
) -> int:
    """Show a run as a tree: states, attempts, durations, and what is wrong.

    Parameters
    ----------
    all
        Every task; long lists are shortened otherwise.
    task
        This task alone (its id, or its first characters): its attempts, with tracebacks.
    """
    from dagbok.cli.show import show_run
    from dagbok.cli.show_task import show_task

    return show_run(run, all, place, output) if task is None else show_task(run, task, place, output)


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
