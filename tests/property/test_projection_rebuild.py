"""However the tables came to be, they are what a rebuild from zero makes of the log."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from dagbok.projections.projector import Projector, rebuild
from tests.support.histories import random_history
from tests.support.logbuilder import LogBuilder
from tests.support.places import Site
from tests.support.projecting import dump, project
from tests.support.scale import scale

histories = st.builds(random_history, st.integers(0, 2**32), st.integers(0, 120))
views = st.sampled_from((None, ["graph"], ["journal"], ["reports", "graph"], []))


@settings(max_examples=scale(15, 600), deadline=None)
@given(history=histories, cut=st.integers(0, 120), rebuilt=views)
def test_tables_that_grew_and_were_rebuilt_on_the_way_equal_new_ones(
    site: Site, history: LogBuilder, cut: int, rebuilt: list[str] | None
) -> None:
    asyncio.run(_grow_and_rebuild(site, history, cut, rebuilt))


async def _grow_and_rebuild(site: Site, history: LogBuilder, cut: int, rebuilt: list[str] | None) -> None:
    records, history.records = history.records, history.records[:cut]
    log = await history.log()
    with TemporaryDirectory() as folder, site() as place:
        tables = place.open()
        projector = Projector(log, tables, batch_records=20)
        await projector.catch_up()
        history.records = records
        await history.append_to(log, min(cut, len(records)))
        await rebuild(log, tables, rebuilt, batch_records=30)
        await projector.catch_up()
        assert dump(tables) == await project(log, Path(folder) / "whole.db")
        await rebuild(log, tables)
        assert dump(tables) == await project(log, Path(folder) / "again.db", 7)
