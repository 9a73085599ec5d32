"""`dagbok limits`, and `--limit` of `dagbok run` and `dagbok submit`: what a run may use, and changing it."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Sequence

import msgspec
from pydantic import ValidationError

from dagbok.cli import say
from dagbok.cli.asking import decide
from dagbok.cli.budget import budget_line
from dagbok.cli.control import accepted, send_command
from dagbok.cli.options import Output, Place, settle
from dagbok.cli.quiet import quiet_logs
from dagbok.cli.reading import Reading, reading
from dagbok.events.budgets import Limits
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput
from dagbok.events.run import values
from dagbok.events.run.amounts import costs_more
from dagbok.events.run.commands import SetLimits
from dagbok.events.written import problems_of
from dagbok.limiting import hold_to, limits_command
from dagbok.projections.task_graph.state import RunStatus
from dagbok.projections.views.graph.rows import RunRow
from dagbok.sending import client_command
from dagbok.settings import Settings

SET_BY = ("RunStarted", "LimitsSet")
MAX_DIGITS = 20


def limits_of(found: Reading, run: RunRow) -> values.Limits:
    """The limits as the last event about them says."""
    rows = found.queries.journal(found.tenant, found.project, run.run, types=SET_BY)
    data = msgspec.json.decode(rows[-1].data, type=dict[str, msgspec.Raw])
    return msgspec.json.decode(data["limits"], type=values.Limits) if "limits" in data else values.Limits()


def parse(changes: Sequence[str]) -> Limits | None:
    """`NAME=NUMBER`s as limits that name these; none for nothing. Raises `InvalidInput` (`usage`) for anything else."""
    parsed: dict[str, int | str] = {}
    for change in changes:
        name, _, number = change.partition("=")
        if name not in Limits.model_fields:
            near = difflib.get_close_matches(name, Limits.model_fields, 1)
            said = f"{change!r} names no limit" + (f"; did you mean {near[0]}?" if near else "")
            raise InvalidInput(said, code=Code.USAGE, advice=f"limits: {', '.join(Limits.model_fields)}")
        if name in parsed:
            raise _wrong(f"{name} is named twice")
        parsed[name] = number if name == "max_cost" else _count(change, number)
    try:
        return Limits.model_validate(parsed) if parsed else None
    except ValidationError as error:
        raise _wrong(problems_of(error).replace("Value error, ", "")) from error


def higher(now: Limits | values.Limits, wanted: Limits) -> list[str]:
    """What to say of limits that are above those that `wanted` names."""
    there = {name: getattr(now, name) for name in wanted.named}
    stand = [
        f"{name}={value}"
        for name, value in there.items()
        if value is not None and costs_more(str(value), str(getattr(wanted, name)))
    ]
    return [f"the run has {', '.join(stand)}, which stays: limits only grow"] if stand else []


async def hold_run_to(settings: Settings, run: str, wanted: Limits) -> list[str]:
    """Raise the limits of a run that was there to those that are wanted, or set them; what to say of higher ones.
    Raises `Refused`."""

    async def now() -> tuple[RunStatus, values.Limits]:
        async with reading(settings) as found:
            row = found.find_run(run)
            return row.status, limits_of(found, row)

    async def send(command: SetLimits) -> None:
        envelope = client_command(run, command, tenant=settings.tenant, project=settings.project, user=settings.user)
        accepted(await decide(settings, envelope), run, settings)

    return higher(await hold_to(wanted, now, send), wanted)


def limits(name: str, changes: Sequence[str], place: Place | None, output: Output | None) -> int:
    """Show the limits of a run, or set those that are named."""
    wanted = parse(changes)
    if wanted is None:
        return _show(name, place, output)
    command = limits_command(wanted, {})
    return send_command(name, lambda _found, _run: command, "limits set", place, output, goes_on=True)


def _count(change: str, number: str) -> int:
    digits = number.replace("_", "")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= MAX_DIGITS):
        raise _wrong(f"{change!r} is no NAME=NUMBER of a limit")
    return int(digits)


def _wrong(what: str) -> InvalidInput:
    return InvalidInput(what, code=Code.USAGE, advice="write each once, as max_tokens=10000 or max_cost=2.50")


async def _read(settings: Settings, name: str) -> tuple[values.Limits, str]:
    async with reading(settings) as found:
        run = found.find_run(name)
        return limits_of(found, run), budget_line(run)


def _show(name: str, place: Place | None, output: Output | None) -> int:
    settings, how = settle(place, output)
    quiet_logs(settings)
    now, used = asyncio.run(_read(settings, name))
    if how.json:
        say.out_json(msgspec.structs.asdict(now))
        return 0
    width = max(map(len, Limits.model_fields))
    said = {name: "no limit" if value is None else value for name, value in msgspec.structs.asdict(now).items()}
    lines = [f"{name.ljust(width)}  {value}" for name, value in said.items()]
    say.out("\n".join([*lines, *(["", f"used: {used}"] if used else [])]))
    return 0
