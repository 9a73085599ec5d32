"""Which pools the living processes of a folder serve, as any process sees it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from dagbok import Dagbok, TaskSpec
from dagbok.agents.hosting import serving
from dagbok.agents.hosting.folder import DataFolder
from dagbok.agents.hosting.locks import ProcessLocks
from dagbok.agents.hosting.serving import served_pools
from tests.support.hosts import spec, yes

LIMIT_S = 20.0


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    found = DataFolder(tmp_path / "data")
    found.prepare()
    return found


def test_each_process_says_what_it_serves_until_it_leaves(folder: DataFolder) -> None:
    assert served_pools(folder) == frozenset()
    one, two = ProcessLocks(folder.processes, "one"), ProcessLocks(folder.processes, "two")
    one.acquire()
    one.serves(["a", "b"])
    two.acquire()
    two.serves(["c"])
    assert served_pools(folder) == frozenset({"a", "b", "c"})
    one.release()
    assert served_pools(folder) == frozenset({"c"})
    two.release()


def test_of_a_process_that_has_not_said_it_nothing_is_known(folder: DataFolder) -> None:
    locks = ProcessLocks(folder.processes, "young")
    locks.acquire()
    assert served_pools(folder) is None
    locks.serves([])
    assert served_pools(folder) == frozenset()
    locks.release()


def test_what_a_dead_process_served_is_served_no_more(folder: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    left = folder.processes / "dead.lock"
    left.write_bytes(b'{"pid": 7, "process": "dead", "since_ms": 0, "pools": ["a"]}')
    assert served_pools(folder) == frozenset({"a"}), "it may be about to lock its file"
    os.utime(left, (0, 0))
    assert served_pools(folder) == frozenset()


def test_a_file_that_says_nonsense_makes_it_unknown(folder: DataFolder) -> None:
    (folder.processes / "odd.lock").write_bytes(b"\x00")
    assert served_pools(folder) is None


async def test_a_task_in_a_pool_that_nobody_serves_is_told_by_the_sdk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "YOUNG_S", 0.0)
    task = spec("echo", pool="elsewhere")
    async with Dagbok.embedded(tmp_path, yes, projector="none") as dagbok:
        run = await dagbok.start(task)
        assert dagbok.unserved(run) == [("pool", "elsewhere")]
        async with Dagbok.embedded(tmp_path, yes, pool="elsewhere", projector="none"), asyncio.timeout(LIMIT_S):
            while ("worker", "echo") not in dagbok.unserved(run):  # noqa: ASYNC110 - it is to be looked at
                await asyncio.sleep(0.01)
            assert [str(each) for each in dagbok.unserved(run)] == ["worker 'echo'"]


async def test_the_answer_to_supersede_names_the_replacement(tmp_path: Path) -> None:
    async with Dagbok.embedded(tmp_path, yes, projector="none") as dagbok:
        run = await dagbok.start(spec("echo", id="old"))
        fresh = await dagbok.supersede(run, "old", TaskSpec(goal="g", worker="echo", verifier="yes"))
        assert (fresh.accepted, len(fresh.replacement)) == (True, 32)
        named = await dagbok.supersede(run, fresh.replacement, spec("echo", id="new"))
        assert named.replacement == "new"
