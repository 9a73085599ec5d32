"""What somebody types by mistake, or a shell by an empty variable, is not taken for something else."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from dagbok import Dagbok, Outcome, TaskContext, worker
from dagbok.cli import main
from tests.support.hosts import spec, yes


@worker("stop")
async def stop(task: TaskContext) -> Outcome:
    """Waits for a person."""
    return Outcome.blocked("look at it")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With one run of one task, which is blocked."""
    folder = tmp_path_factory.mktemp("words") / "data"

    async def make() -> None:
        async with Dagbok.embedded(folder, stop, yes, projector="none") as dagbok:
            await dagbok.run(spec("stop"))

    asyncio.run(make())
    return folder


@pytest.mark.parametrize(
    "words",
    [
        ("cancel", ""),
        ("cancel", "last", "--task", ""),
        ("pause", ""),
        ("resolve", "last", ""),
        ("retry", "last", ""),
        ("show", ""),
        ("ls", "--limit", "0"),
        ("ls", "--limit", "-1"),
    ],
)
def test_words_that_name_nothing_are_wrong_usage_and_change_nothing(
    folder: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main([*words, "--data", str(folder)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("DAGBOK-USAGE: ")
    assert len(said.err.splitlines()) == 1
    assert main(["ls", "--status", "blocked", "--json", "--data", str(folder)]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 1
