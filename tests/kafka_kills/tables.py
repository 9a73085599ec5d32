"""What must hold of the tables of a cluster: they say what the topic says."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from dagbok.events.body import stored_events
from dagbok.events.commit import split_value
from dagbok.events.log.port import EVENTS
from dagbok.projections.store import Tables
from dagbok.projections.tables.positions import read_position, void_records
from dagbok.projections.views.graph.rows import RunRow, TaskRow
from tests.kafka_kills.site import PAUSE_S, TIMEOUT_S, Site
from tests.kafka_kills.truth import chain_of, raw_values
from tests.support.projecting import Rows, dump, project

STATUSES = {"RunStarted": "running", "RunSucceeded": "succeeded"}


async def check_tables(site: Site) -> int:
    """The tables that the projectors wrote are those that a projection from zero gives, and say what is counted here
    of the commits that count. Returns how many void records they have passed over."""
    tables = site.place.open()
    try:
        while True:
            ends = await _ends(site)
            await _projected(site, tables, ends)
            rows = dump(tables)
            with TemporaryDirectory() as folder:
                again = await project(site.process.log, Path(folder) / "again.db")
            if ends == await _ends(site):
                void = _void(tables)
                break
    finally:
        tables.close()
    for name in again:
        assert rows[name] == again[name], name
    await _check_counted(site, rows)
    return void


async def _ends(site: Site) -> list[int]:
    return [(await site.process.log.bounds(EVENTS, number)).end for number in range(site.partitions)]


async def _projected(site: Site, tables: Tables, ends: list[int]) -> None:
    """Wait until all views stand there."""
    async with asyncio.timeout(TIMEOUT_S):
        while not await asyncio.to_thread(_stand_at, tables, ends):  # noqa: ASYNC110 – they can only be asked
            await asyncio.sleep(PAUSE_S)


def _void(tables: Tables) -> int:
    with tables.reading() as connection:
        return min(void_records(connection, name, tables.live_version(connection, name)) for name in tables.views)


def _stand_at(tables: Tables, ends: list[int]) -> bool:
    with tables.reading() as connection:
        for name in tables.views:
            version = tables.live_version(connection, name)
            stands = [read_position(connection, name, version, number) for number in range(len(ends))]
            found = [0 if stand is None else stand.next_offset for stand in stands]
            if any(stand < end for stand, end in zip(found, ends, strict=True)):
                return False
    return True


async def _check_counted(site: Site, rows: Rows) -> None:
    statuses, verified, tasks = dict[str, str](), Counter[str](), Counter[str]()
    for number in range(site.partitions):
        values = await raw_values(site.settings, EVENTS, number)
        counting = set(chain_of(values).offsets)
        for value in [value for offset, value in values if offset in counting]:
            split = split_value(value)
            assert split is not None
            seal, body = split
            stream = seal.stream or ""
            for event in stored_events(body, seal.codec, seal.raw_size):
                statuses[stream] = STATUSES.get(event.type, statuses.get(stream, ""))
                verified[stream] += event.type == "TaskVerified"
    runs = [row for row in rows["runs"] if isinstance(row, RunRow)]
    assert {row.stream: row.status for row in runs} == {stream: told for stream, told in statuses.items() if told}
    assert {row.stream: row.verified for row in runs} == {stream: verified[stream] for stream in statuses if stream}
    for row in rows["tasks"]:
        assert isinstance(row, TaskRow)
        tasks[row.run] += row.status == "verified"
    assert {row.run: row.verified for row in runs} == {row.run: tasks[row.run] for row in runs}
