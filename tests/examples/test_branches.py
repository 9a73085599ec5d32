"""The example of branches: the one that is not taken is skipped, the join uses the one that ran."""

from __future__ import annotations

from pathlib import Path

import branches
import pytest

from dagbok import Dagbok


@pytest.mark.parametrize(
    ("message", "used", "skipped"),
    [
        ("I was charged twice", ["refund"], {"second-look", "article"}),
        ("How do I log in?", ["article"], {"second-look", "refund"}),
        ("??", ["article", "second-look"], {"refund"}),
    ],
)
async def test_a_message_is_answered_by_the_branch_it_needs(
    message: str, used: list[str], skipped: set[str], tmp_path: Path
) -> None:
    async with Dagbok.embedded(tmp_path, branches, projector="none") as dagbok:
        run = await dagbok.start(branches.main(message))
        result = await dagbok.wait(run)
        assert result.succeeded
        assert result.json()["used"] == used
        found = dagbok.host.find(f"run:{run}")
        assert found is not None
        assert {node.id for node in found.tasks.values() if node.status == "skipped"} == skipped
