"""`dagbok projections rebuild`: names, options and help."""

from __future__ import annotations

from cyclopts import App, Group

from dagbok.cli.options import Output, Place


def add_to(app: App, group: Group) -> None:
    """Add the command."""
    projections = App(name="projections", group=group, help="Build the tables anew from the log.")
    projections.command(rebuild)
    app.command(projections)


def rebuild(*views: str, place: Place | None = None, output: Output | None = None) -> int:
    """Build views anew beside the live ones, and swap them at the end.

    Queries see the old rows until then. Projectors go on meanwhile. Without
    a VIEW, all are built.

    For example:
      dagbok projections rebuild graph
      dagbok projections rebuild --kafka broker:9092 --database postgresql://db/dagbok

    Parameters
    ----------
    views
        Names of views, as docs/tables.md has them.
    """
    from dagbok.cli.rebuild import rebuild_views

    return rebuild_views(views, place, output)
