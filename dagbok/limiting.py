"""Limits as programs and people name them, made into commands: only what is named changes."""

from __future__ import annotations

from dagbok.events.budgets import LimitChanges, Limits, encode_limits
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput
from dagbok.events.run import values
from dagbok.events.run.commands import SetLimits
from dagbok.events.run.limits import changed, raised


def limits_command(limits: Limits | None, changes: LimitChanges) -> SetLimits:
    """The command that changes those that either names. Raises `InvalidInput` (`usage`) when none is named, or one
    twice, and `pydantic.ValidationError` for what is no number of a limit."""
    said, more = limits or Limits(), Limits(**changes)
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
