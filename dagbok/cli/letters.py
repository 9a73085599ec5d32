"""`dagbok dead-letters`: names, options and help. What the commands do is in `dead_letters.py`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Group, Parameter
from cyclopts.validators import Number

from dagbok.cli.options import Output, Place

Letter = Annotated[str, Parameter(help='The command, as "dagbok dead-letters ls" has it: PARTITION:OFFSET.')]


def add_to(app: App, group: Group) -> None:
    """Add the three commands."""
    letters = App(
        name="dead-letters", group=group, help="Look at commands that could not be decoded or handled, and try again."
    )
    letters.command(ls)
    letters.command(show)
    letters.command(redrive)
    app.command(letters)


def ls(
    *,
    limit: Annotated[int, Parameter(validator=Number(gte=1))] = 50,
    place: Place | None = None,
    output: Output | None = None,
) -> int:
    """List the newest, of all tenants.

    Parameters
    ----------
    limit
        At most so many.
    """
    from dagbok.cli.dead_letters import list_letters

    return list_letters(limit, place, output)


def show(letter: Letter, /, *, place: Place | None = None, output: Output | None = None) -> int:
    """Show one: who sent it, why it was refused, its bytes."""
    from dagbok.cli.dead_letters import show_letter

    return show_letter(letter, place, output)


def redrive(letter: Letter, /, *, place: Place | None = None, output: Output | None = None) -> int:
    """Append one anew, behind all that was sent since.

    It is decided as any other command: refused again, unless the code that
    decides it has changed. Nothing ever waited for it.

    For example:
      dagbok dead-letters redrive 0:17
    """
    from dagbok.cli.dead_letters import redrive_letter

    return redrive_letter(letter, place, output)
