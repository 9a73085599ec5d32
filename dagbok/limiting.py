"""Limits as programs and people name them, made into commands: only what is named changes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from dagbok.events.arguments import typed
from dagbok.events.budgets import LimitChanges, Limits, encode_limits
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput, Refused
from dagbok.events.run import values
from dagbok.events.run.commands import SetLimits
from dagbok.events.run.limits import changed, raised
from dagbok.projections.task_graph.state import CLOSED_RUN, RunStatus

HELD_AGAIN: Final = (Code.CONFIG_MISMATCH, Code.RUN_CLOSED)
"""Somebody else has raised them since, or the run has ended."""

Now = Callable[[], Awaitable[tuple[RunStatus | None, values.Limits]]]
Send = Callable[[SetLimits], Awaitable[object]]


def limits_command(limits: Limits | None, changes: LimitChanges) -> SetLimits:
    """The command that changes those that either names. Raises `InvalidInput` (`usage`) when none is named, or one
    twice, and `pydantic.ValidationError` for what is no number of a limit."""
    said, more = Limits() if limits is None else typed("limits", limits, Limits), Limits(**changes)
    if twice := [name for name in more.named if name in said.named]:
        raise InvalidInput(f"named twice: {', '.join(twice)}", code=Code.USAGE, advice="name each limit once")
    if not said.named and not more.named:
        raise InvalidInput("no limit is named", code=Code.USAGE, advice="name what changes: max_tokens=20_000")
    both = said.model_copy(update={name: getattr(more, name) for name in more.named})
    return SetLimits(encode_limits(both), both.named)


def raising_command(now: values.Limits, wanted: Limits) -> SetLimits | None:
    """The command after which the limits of a run are not lower than those that `wanted` names; none when they are not
    now. Higher ones stay."""
    then = raised(now, encode_limits(wanted), wanted.named)
    named = changed(now, then)
    return SetLimits(then, named) if named else None


async def hold_to(wanted: Limits, now: Now, send: Send) -> values.Limits:
    """Raise the limits of a run that was there to those that are wanted, or set them, whoever else does so meanwhile;
    the limits that it has then. `now`: how the run stands, and its limits; `send` raises `Refused`, and so does
    this."""
    while True:
        status, limits = await now()
        command = None if status in CLOSED_RUN else raising_command(limits, wanted)
        if command is None:
            return limits
        try:
            await send(command)
        except Refused as error:
            if error.code not in HELD_AGAIN:
                raise
