"""What a data folder refers to is never collected; what a killed process left behind is."""

from __future__ import annotations

import os
import time
from pathlib import Path

from dagbok import Candidate, Dagbok, Outcome, TaskContext, TaskSpec, verifier, worker
from dagbok.agents.hosting.folder import DataFolder
from dagbok.agents.hosting.orphans import collect
from dagbok.events.canonical import sha256_hex
from dagbok.projections.artifacts.local import local_store
from dagbok.projections.artifacts.scope import Scope

LONG_AGO_S = 30 * 24 * 3600
SCOPE = Scope("acme", "docs")


@worker("large", pure=True)
async def large(task: TaskContext) -> Outcome:
    return Outcome.candidate(b"x" * 100_000)


@verifier("judge", version="1")
async def judge(candidate: Candidate, task: TaskContext) -> bool:
    return task.goal == "pass"


def make_old(folder: Path) -> None:
    then = time.time() - LONG_AGO_S
    for path in folder.rglob("*"):
        if path.is_file():
            os.utime(path, (then, then))


async def run_once(folder: Path) -> None:
    async with Dagbok.embedded(folder, large, judge, projector="none", snapshot_bytes=1) as dagbok:
        task = TaskSpec(goal="pass", worker="large", verifier="judge")
        result = await dagbok.run(task, tenant="acme", project="docs")
        assert result.succeeded


async def test_published_and_staged_artifacts_and_parts_of_snapshots_stay_and_orphans_go(tmp_path: Path) -> None:
    await run_once(tmp_path)
    folder = DataFolder(tmp_path)
    store = local_store(folder.artifacts)
    orphan = store.put(SCOPE, b"nobody refers to this" * 1000)
    make_old(folder.artifacts)
    make_old(folder.snapshots)

    artifacts, snapshots = await collect(folder, dry_run=False)

    assert [blob.size_bytes for blob in artifacts.orphans] == [orphan.size_bytes]
    assert snapshots.listed > 0
    assert not snapshots.orphans
    assert store.get(SCOPE, sha256_hex(b"x" * 100_000), 100_000)
    assert not store.exists(SCOPE, orphan.sha256)


async def test_what_is_young_stays_and_a_dry_run_removes_nothing(tmp_path: Path) -> None:
    await run_once(tmp_path)
    folder = DataFolder(tmp_path)
    store = local_store(folder.artifacts)
    young = store.put(SCOPE, b"just written, its command is on the way" * 1000)

    assert not (await collect(folder, dry_run=False))[0].orphans
    make_old(folder.artifacts)
    assert len((await collect(folder, dry_run=True))[0].orphans) == 1
    assert store.exists(SCOPE, young.sha256)
