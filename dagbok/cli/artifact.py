"""`dagbok artifact`: names, options and help. What the commands do is in `artifacts.py` and `orphans.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Group, Parameter

from dagbok.cli.options import FolderPlace, Output, Place, RunName


def add_to(app: App, group: Group) -> None:
    """Add the three commands."""
    artifact = App(name="artifact", group=group, help="List and fetch what tasks published.")
    artifact.command(get)
    artifact.command(ls)
    artifact.command(collect)
    app.command(artifact)


def get(
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
    from dagbok.cli import artifacts

    return artifacts.get(run, task, name, out, place, output)


def ls(run: RunName = "last", /, *, place: Place | None = None, output: Output | None = None) -> int:
    """List the published artifacts of a run."""
    from dagbok.cli.artifacts import list_artifacts

    return list_artifacts(run, place, output)


def collect(
    *,
    remove: Annotated[bool, Parameter(negative="", show_default=False)] = False,
    grace_days: float = 7.0,
    place: FolderPlace | None = None,
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
