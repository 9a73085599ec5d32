"""`dagbok run FILE`: the tasks of a file, from their start to their end, over as many starts of this command as it
takes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from dagbok.cli import say
from dagbok.cli.ending import tell
from dagbok.cli.entry import call_main, main_app
from dagbok.cli.interrupts import Interrupted, interruptible, leave_threads
from dagbok.cli.limits import parse
from dagbok.cli.module_file import as_file, load_all, load_file
from dagbok.cli.options import Output, Place, settle
from dagbok.cli.quiet import only_json, quiet_logs
from dagbok.cli.run_kafka import KafkaSession
from dagbok.cli.run_session import Session


def run_file(
    file: Path,
    options: Sequence[str],
    imports: Sequence[str],
    *,
    new: bool,
    limits: Sequence[str],
    quiet: bool,
    place: Place | None,
    output: Output | None,
) -> int:
    """Load the file, run its tasks, tell how they ended; the exit status."""
    settings, how = settle(place, output)
    quiet_logs(settings)
    wanted = parse(limits)
    with only_json(how.json):
        modules = load_all([as_file(file), *imports])
        entry = call_main(modules[0], options, str(file))
    if entry is None:
        return 0
    kind = Session if settings.kafka is None else KafkaSession
    session = kind(entry, modules, settings, new=new, limits=wanted, quiet=quiet or how.json)
    try:
        return asyncio.run(interruptible(_run_and_tell(session, quiet=quiet, as_json=how.json)))
    except Interrupted as interrupted:
        say.note("interrupted: the same command goes on where it was")
        leave_threads(interrupted.status)
        return interrupted.status


def help_on_file(command: str, file: str) -> None:
    """Print the options of `main`. Raises like `load_file`."""
    main_app(load_file(Path(file)), file, command).help_print([])


async def _run_and_tell(session: Session, *, quiet: bool, as_json: bool) -> int:
    with only_json(as_json):
        ended = await session.follow()
    return await tell(ended, session.settings, quiet=quiet, as_json=as_json)
