"""The commands that look at the sessions of tasks."""

from __future__ import annotations

from cyclopts import App, Group

from dagbok.cli.options import AsOf, Output, Place, RunName


def add_to(app: App, group: Group) -> None:
    """`dagbok session show` and `fork`."""
    session = App(name="session", group=group, help="Look at what workers keep from turn to turn, and fork it.")
    session.command(session_show, name="show")
    session.command(session_fork, name="fork")
    app.command(session)


def session_show(
    run: RunName,
    task: str,
    /,
    *,
    as_of: AsOf | None = None,
    place: Place | None = None,
    output: Output | None = None,
) -> int:
    """Print the session of a task: JSON, as its worker put it down.

    Parameters
    ----------
    task
        Id of the task, or its first characters.
    """
    from dagbok.cli.sessions import show

    return show(run, task, as_of or AsOf(), place, output)


def session_fork(
    run: RunName,
    task: str,
    /,
    *,
    as_of: AsOf | None = None,
    place: Place | None = None,
    output: Output | None = None,
) -> int:
    """Let another task go on with the session of a task: prints the "session" of its spec, as JSON.

    Parameters
    ----------
    task
        Id of the task, or its first characters.
    """
    from dagbok.cli.sessions import fork

    return fork(run, task, as_of or AsOf(), place, output)
