"""The example of Pydantic AI in layers: an attempt that is lost costs the books after it, not those before."""

from __future__ import annotations

from pathlib import Path

import layers_pydantic_ai
import pytest

from dagbok import Dagbok
from dagbok.events.run.events import AttemptFailed
from tests.support.hosts import events_of


@pytest.mark.parametrize(("lose_after", "failed"), [(0, 0), (2, 1)])
async def test_every_book_is_asked_for_once(lose_after: int, failed: int, tmp_path: Path) -> None:
    async with Dagbok.embedded(tmp_path, layers_pydantic_ai, projector="none") as dagbok:
        result = await dagbok.run(layers_pydantic_ai.main(lose_after=lose_after))
        assert result.succeeded
        assert {answer["book"]: answer["copies"] for answer in result.json()} == layers_pydantic_ai.BOOKS
        assert len(await events_of(dagbok, AttemptFailed)) == failed
        session = (await dagbok.session(result.run, "desk")).value
    messages = session["layers"]["history"]["state"]["messages"]
    parts = [part for message in messages for part in message["parts"]]
    asked = [part["content"] for part in parts if part["part_kind"] == "user-prompt"]
    assert asked == list(layers_pydantic_ai.BOOKS)
