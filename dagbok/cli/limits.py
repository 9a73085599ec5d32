"""`dagbok limits`: what a run may use, and raising it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import msgspec

from dagbok.cli import say
from dagbok.cli.control import send_command
from dagbok.cli.options import Output, Place, settle
from dagbok.cli.quiet import quiet_logs
from dagbok.cli.reading import Reading, reading
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput
from dagbok.events.run.commands import RunCommand, SetLimits
from dagbok.events.run.values import Limits
from dagbok.projections.views.graph.rows import RunRow
from dagbok.settings import Settings

SET_BY = ("RunStarted", "LimitsSet")


def limits_of(found: Reading, run: RunRow) -> Limits:
    """The limits as the last event about them says."""
    rows = found.queries.journal(found.tenant, found.project, run.run, types=SET_BY)
    data = msgspec.json.decode(rows[-1].data, type=dict[str, msgspec.Raw])
    return msgspec.json.decode(data["limits"], type=Limits) if "limits" in data else Limits()


def parse(changes: Sequence[str]) -> Mapping[str, int | str]:
    """`name=value` as a mapping. Raises `InvalidInput` for anything else."""
    parsed: dict[str, int | str] = {}
    for change in changes:
        name, _, value = change.partition("=")
        is_cost = name == "max_cost" and value.replace(".", "", 1).isdecimal()
        if name not in Limits.__struct_fields__ or not (value.isdecimal() or is_cost):
            known = ", ".join(Limits.__struct_fields__)
            raise InvalidInput(f"{change!r} is no NAME=NUMBER of a limit", code=Code.USAGE, advice=f"limits: {known}")
        parsed[name] = value if name == "max_cost" else int(value)
    return parsed


def limits(name: str, changes: Sequence[str], place: Place | None, output: Output | None) -> int:
    """Show the limits of a run, or raise some."""
    wanted = parse(changes)
    if not wanted:
        return _show(name, place, output)

    def make(found: Reading, run: RunRow) -> RunCommand:
        return SetLimits(msgspec.structs.replace(limits_of(found, run), **wanted))

    return send_command(name, make, "limits raised", place, output)


async def _read(settings: Settings, name: str) -> Limits:
    async with reading(settings) as found:
        return limits_of(found, found.find_run(name))


def _show(name: str, place: Place | None, output: Output | None) -> int:
    settings, how = settle(place, output)
    quiet_logs(settings)
    now = asyncio.run(_read(settings, name))
    values: dict[str, int | str | None] = {field: getattr(now, field) for field in Limits.__struct_fields__}
    if how.json:
        say.out_json(values)
    else:
        width = max(map(len, values))
        said = {field: "no limit" if value is None else str(value) for field, value in values.items()}
        say.out("\n".join(f"{field.ljust(width)}  {value}" for field, value in said.items()))
    return 0
