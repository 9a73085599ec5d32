"""Whatever is damaged in the tables, the error is one of ours and says what to do: they can be built again."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from dagbok.events.errors import LogLost, StorageFailed
from dagbok.events.log.memory import MemoryLog
from dagbok.projections.projector import Projector
from dagbok.projections.queries import Queries
from dagbok.projections.store import Tables
from tests.support.histories import random_history
from tests.support.projecting import project
from tests.support.scale import scale

ME = ("acme", "docs")


@pytest.mark.parametrize("seed", range(scale(3, 30)))
async def test_whatever_is_damaged_the_file_is_named_and_can_be_removed(seed: int, tmp_path: Path) -> None:
    path, random = tmp_path / "tables.db", Random(seed)
    log = await random_history(seed=5, steps=60).log()
    await project(log, path)
    whole = path.read_bytes()
    said = list[StorageFailed]()
    for _ in range(40):
        path.write_bytes(damaged(whole, random))
        try:
            await use(log, path)
        except LogLost:
            pass  # the position itself was hit
        except StorageFailed as error:
            said.append(error)
        for rest in tmp_path.iterdir():
            rest.unlink()
    assert said
    assert all(str(path) in error.message and "remove the file" in error.advice for error in said)
    assert not [error for error in said if "\n" in str(error)]
    await use(log, path)


def damaged(whole: bytes, random: Random) -> bytes:
    """Some bytes are others now, most of them where the database says what is in it; or the end is gone."""
    data = bytearray(whole)
    for _ in range(random.choice((1, 3, 20))):
        place = random.randrange(len(data) if random.random() < 0.5 else 30_000)
        data[place : place + 3] = random.choice((b"\x7f\x00\xff", b"\x00\x00\x00", b"\xff\xff\xff"))
    return bytes(data[: random.randrange(1_000, len(data))] if random.random() < 0.1 else data)


async def use(log: MemoryLog, path: Path) -> None:
    """Bring the tables up to date and ask for everything."""
    tables = Tables.open(path)
    try:
        await Projector(log, tables).catch_up()
        queries = Queries(tables)
        for row in queries.list_runs(*ME):
            queries.task_tree(*ME, row.run)
            queries.edges(*ME, row.run)
            queries.attempts(*ME, row.run)
            queries.reports(*ME, row.run)
            queries.artifacts(*ME, row.run)
            queries.journal(*ME, row.run)
        queries.refusals(*ME)
        queries.position()
        queries.void_records()
    finally:
        tables.close()
