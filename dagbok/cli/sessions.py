"""`dagbok session show` and `fork`: what a worker has put down, after any turn."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec
import orjson

from dagbok.agents.workers.reader import ArtifactReader
from dagbok.agents.workers.sessions.past import Told, fork_session, read_session, turn_of, turns_of
from dagbok.cli import say
from dagbok.cli.options import AsOf, Output, Place, settle
from dagbok.cli.places import artifacts_place
from dagbok.cli.quiet import quiet_logs
from dagbok.cli.reading import Reading, reading
from dagbok.cli.text import short
from dagbok.cli.wiring import artifact_reader
from dagbok.projections.artifacts.scope import Scope
from dagbok.projections.task_graph.state import Session
from dagbok.sessions import one_of, reached
from dagbok.settings import Settings

PAGE = 1_000


def show(run: str, task: str, as_of: AsOf, place: Place | None, output: Output | None) -> int:
    """Print the JSON value of a session."""
    settings, how = settle(place, output)
    quiet_logs(settings)
    found = asyncio.run(_at_turn(settings, run, task, as_of, _shown))
    if how.json:
        say.out_json(found)
        return 0
    sys.stdout.write(orjson.dumps(found["value"], option=orjson.OPT_INDENT_2).decode() + "\n")
    say.note(f"task {short(str(found['task']))}, turn {found['turn']}, of those up to {found['last_turn']}")
    return 0


def fork(run: str, task: str, as_of: AsOf, place: Place | None, output: Output | None) -> int:
    """Store a session for another task to go on with, and print what its spec names it by."""
    settings, _ = settle(place, output)
    quiet_logs(settings)
    say.out_json(asyncio.run(_at_turn(settings, run, task, as_of, _forked)))
    return 0


class _Found(NamedTuple):
    run: str
    task: str
    session: Session
    last_turn: int
    reader: ArtifactReader
    scope: Scope


async def _at_turn(
    settings: Settings,
    run: str,
    task: str,
    as_of: AsOf,
    tell: Callable[[_Found], dict[str, object]],
) -> dict[str, object]:
    one_of(as_of.turn, as_of.event)
    async with reading(settings) as found:
        row = found.find_run(run)
        id = found.find_task(row, task).task
        turns = turns_of(id, _told(found, row.run, as_of.event))
        session = turn_of(id, turns, as_of.turn)
        reader = artifact_reader(artifacts_place(settings), found.log)
        return tell(_Found(row.run, id, session, max(turns), reader, Scope(found.tenant, found.project)))


def _shown(found: _Found) -> dict[str, object]:
    session = found.session
    value = read_session(found.reader, found.scope, found.task, session)
    told = {"task": found.task, "turn": session.turn, "last_turn": found.last_turn, "digest": session.digest}
    return {**told, "value": value}


def _forked(found: _Found) -> dict[str, object]:
    return fork_session(found.reader, found.scope, found.run, found.task, found.session).model_dump()


def _told(found: Reading, run: str, until: int | None) -> Iterator[Told]:
    after = 0
    while rows := found.queries.journal(found.tenant, found.project, run, after_seq=after, limit=PAGE):
        for row in rows:
            if until is not None and row.seq > until:
                return
            at = (row.log_partition, row.log_offset, row.log_event)
            yield row.type, row.task, at, msgspec.json.decode(row.data)
        after = rows[-1].seq
    if until is not None:
        reached(run, until, after)
