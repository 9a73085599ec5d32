"""`dagbok submit FILE`: start the run of a file, and leave."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from dagbok.agents.hosting.control import decide_once
from dagbok.agents.hosting.folder import DataFolder
from dagbok.agents.workers.definitions import Registry
from dagbok.cli import say
from dagbok.cli.choose import choose, explained
from dagbok.cli.control import accepted
from dagbok.cli.entry import Entry, call_main
from dagbok.cli.limits import hold_run_to, parse
from dagbok.cli.module_file import as_file, load_all, pool_of
from dagbok.cli.options import Output, Place, settle
from dagbok.cli.ownership import who_goes_on
from dagbok.cli.quiet import only_json, quiet_logs
from dagbok.cli.unserved import note_of
from dagbok.events.budgets import Limits
from dagbok.events.errors import Refused
from dagbok.events.ids import run_id
from dagbok.events.run.values import Pinned
from dagbok.sending import client_command
from dagbok.settings import Settings
from dagbok.starting import start_command


def submit_file(
    file: Path,
    options: Sequence[str],
    imports: Sequence[str],
    *,
    new: bool,
    limits: Sequence[str],
    place: Place | None,
    output: Output | None,
) -> int:
    """Start the run that `dagbok run` with the same arguments would start or go on with, and print its id. Raises what
    loading the file raises, and `Refused`."""
    settings, how = settle(place, output)
    quiet_logs(settings)
    wanted = parse(limits)
    with only_json(how.json):
        modules = load_all([as_file(file), *imports])
        entry = call_main(modules[0], options, str(file))
    if entry is None:
        return 0
    if settings.kafka is not None:
        from dagbok.cli.run_kafka import submit_to_kafka

        run, known = asyncio.run(submit_to_kafka(settings, modules, entry, new=new, limits=wanted))
        if how.json:
            say.out_json({"run": run, "resumed": known})
        else:
            say.out(run)
        return 0
    registry = Registry()
    for module in modules:
        registry.add_from(module)
    pinned = Pinned(registry.pins())
    run, known, notes = asyncio.run(_submit(settings, entry, pinned, new=new, limits=wanted))
    if how.json:
        say.out_json({"run": run, "resumed": known})
    else:
        say.out(run)
        for line in (*notes, *who_goes_on(settings), *note_of(pool_of(file), settings, file=file)):
            say.note(line)
    return 0


async def _submit(
    settings: Settings, entry: Entry, pinned: Pinned, *, new: bool, limits: Limits | None
) -> tuple[str, bool, list[str]]:
    key, known = await choose(settings, entry, new=new)
    run = run_id(settings.tenant, settings.project, key)
    command = start_command(run, entry.tasks, pinned, pool=pool_of(entry.file), user=settings.user, limits=limits)
    envelope = client_command(run, command, tenant=settings.tenant, project=settings.project, user=settings.user)
    answer = await decide_once(DataFolder(settings.data), envelope)
    try:
        accepted(answer, run, settings)
    except Refused as error:
        raise explained(error, entry, run, settings) from error
    return run, known, [] if limits is None else await hold_run_to(settings, run, limits)
