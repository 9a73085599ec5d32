"""Who has the answer to a command can wait until the tables know of it too."""

from __future__ import annotations

import asyncio

from dagbok.projections.at_least import reached
from dagbok.projections.projector import Projector
from dagbok.projections.queries import Queries
from dagbok.testing.make import start, task
from tests.support.logbuilder import LogBuilder
from tests.support.places import Place


async def test_it_waits_for_the_commit_and_not_for_the_one_behind_it(place: Place) -> None:
    builder = LogBuilder()
    for name in ("run-1", "run-2"):
        builder.send(name, start(task("root")))
    tables = place.open()
    queries, projector = Queries(tables), Projector(await builder.log(), tables)
    assert not await reached(queries, (0, 0), 0)
    waiting = asyncio.create_task(reached(queries, (0, 1), 60))
    await projector.catch_up()
    assert await waiting
    assert len(queries.list_runs("acme", "docs")) == 2
    assert await reached(queries, (0, 0), 0)
    assert not await reached(queries, (0, 2), 0.02)
    assert not await reached(queries, (1, 0), 0)
