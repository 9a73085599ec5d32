"""A host on a disk that fails for a while, on damaged files, on files from the future, and on a network."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from dagbok import Code, Dagbok, DagbokError, Outcome, TaskContext, worker
from dagbok.agents.hosting import folder as folder_module
from dagbok.agents.hosting import undertaker
from dagbok.agents.hosting.folder import DataFolder, filesystem_of
from dagbok.agents.scheduler import clockwork, owner
from dagbok.agents.workers import outbox
from dagbok.events.errors import FormatTooNew, LogCorrupt, StorageFailed
from dagbok.events.log.port import Record, Topic
from dagbok.events.log.sqlite import SqliteLog
from dagbok.events.run.events import AttemptFailed
from tests.support.hosts import events_of, hosted, spec
from tests.support.scale import scale

append = SqliteLog.append


class Disk:
    """Fails appends by chance, and every fifth one if it fails any: some are written all the same, without an
    acknowledgement. `full`: it fails all."""

    def __init__(self, random: Random, chance: float) -> None:
        self.random, self.chance, self.full = random, chance, False
        self.appends = self.failures = 0

    async def append(
        self, log: SqliteLog, topic: Topic, partition: int, records: Sequence[Record], expect: int | None
    ) -> int:
        """The append of a log on this disk."""
        self.appends += 1
        fails = self.full or self.random.random() < self.chance or (self.chance > 0 and self.appends % 5 == 0)
        if not fails:
            return await append(log, topic, partition, records, expect=expect)
        self.failures += 1
        if not self.full and self.random.random() < 0.5:
            await append(log, topic, partition, records, expect=expect)
            raise StorageFailed("written, but that was not heard")
        raise StorageFailed("disk full")


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    """The disk under every log of the test; pauses are short, and what has no answer is repeated soon."""
    disk = Disk(Random(1), 0.0)

    async def failing(
        self: SqliteLog, topic: Topic, partition: int, records: Sequence[Record], *, expect: int | None = None
    ) -> int:
        return await disk.append(self, topic, partition, records, expect)

    monkeypatch.setattr(SqliteLog, "append", failing)
    for module, name in ((owner, "DOUBT_PAUSE_S"), (outbox, "RETRY_PAUSE_S"), (clockwork, "RETRY_PAUSE_S")):
        monkeypatch.setattr(module, name, 0.01)
    monkeypatch.setattr(undertaker, "LOOK_EVERY_S", 0.05)
    defaults = outbox.Outbox.__init__.__kwdefaults__ or {}
    monkeypatch.setattr(outbox.Outbox.__init__, "__kwdefaults__", {**defaults, "repeat_after_s": 0.4})
    yield disk
    disk.chance, disk.full = 0.0, False


@worker("root", pure=True)
async def root(task: TaskContext) -> Outcome:
    """Decompose, then count."""
    if task.phase == "integrate":
        return Outcome.candidate(len(task.dependencies))
    return Outcome.decompose([spec("leaf" if n % 2 else "flaky", id=f"leaf-{n}") for n in range(12)])


@worker("leaf")
async def leaf(task: TaskContext) -> Outcome:
    """Claims first."""
    return Outcome.candidate(1)


@worker("flaky", pure=True)
async def flaky(task: TaskContext) -> Outcome:
    """Needs a backoff timer."""
    if task.attempt == 1:
        raise ValueError("at first it fails")
    return Outcome.candidate(2)


@pytest.mark.parametrize("seed", range(scale(4, 100)))
async def test_nothing_is_lost_on_a_disk_that_fails_now_and_then(seed: int, disk: Disk, tmp_path: Path) -> None:
    disk.random, disk.chance = Random(seed), 0.25
    async with hosted(tmp_path, root, leaf, flaky) as dagbok:
        result = await dagbok.run(spec("root", id="root"))
        assert (result.json(), dict(result.counts)) == (12, {"verified": 13})
        disk.chance = 0.0
        assert len(await events_of(dagbok, AttemptFailed)) == 6
    assert disk.failures


async def test_a_host_on_a_full_disk_goes_on_when_there_is_room_again(disk: Disk, tmp_path: Path) -> None:
    async with hosted(tmp_path, root, leaf, flaky) as dagbok:
        run = await dagbok.start(spec("root", id="root"))
        disk.full = True
        while disk.failures < 5:  # noqa: ASYNC110 - each failure is an append of its own
            await asyncio.sleep(0.01)
        assert not dagbok.host.failure.done()
        disk.full = False
        assert (await dagbok.wait(run)).json() == 12


async def test_a_log_that_is_no_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "log.db").write_bytes(garbage := b"no database at all" * 1_000)
    await refuses(tmp_path, LogCorrupt, Code.LOG_CORRUPT)
    assert (tmp_path / "log.db").read_bytes() == garbage


async def test_a_log_with_an_altered_commit_halts_the_host(tmp_path: Path) -> None:
    async with hosted(tmp_path, leaf) as dagbok:
        await dagbok.run([spec("leaf", inputs="x" * 3_000) for _ in range(30)])
    with closing(sqlite3.connect(tmp_path / "log.db")) as db:
        (value,) = db.execute("SELECT value FROM events WHERE id = 5").fetchone()
        db.execute("UPDATE events SET value = ? WHERE id = 5", (value[:-3] + b" " + value[-3:],))
        db.commit()
    # Nothing behind it counts any more; to go on would be to decide all of it anew.
    await refuses(tmp_path, LogCorrupt, Code.LOG_CORRUPT)


async def test_a_log_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    async with hosted(tmp_path):
        pass
    with closing(sqlite3.connect(tmp_path / "log.db")) as db:
        db.execute("UPDATE meta SET value = 99 WHERE name = 'format'")
        db.commit()
    await refuses(tmp_path, FormatTooNew, Code.SCHEMA_MISMATCH)


async def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")
    await refuses(tmp_path / "data", StorageFailed, Code.STORAGE_FAILED)


MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:25 / /mnt/share rw shared:2 - nfs4 server:/x rw
31 30 8:2 / /mnt/share/local rw shared:3 - xfs /dev/sdb1 rw
32 22 0:26 / /mnt/two\\040words rw shared:4 - cifs //server/x rw
33 22 0:27 / /mnt/over rw - ext4 /dev/sdc1 rw
34 22 0:28 / /mnt/over rw - fuse.sshfs me@server: rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/ann", "ext4"),
        ("/mnt/share", "nfs4"),
        ("/mnt/share/a/b", "nfs4"),
        ("/mnt/shared", "ext4"),
        ("/mnt/share/local/runs", "xfs"),
        ("/mnt/two words/runs", "cifs"),
        ("/mnt/over/runs", "fuse.sshfs"),
    ],
)
def test_the_file_system_of_a_path(path: str, kind: str, tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    assert filesystem_of(Path(path), mounts) == kind


def test_a_system_that_does_not_tell_is_trusted(tmp_path: Path) -> None:
    assert filesystem_of(Path("/home"), tmp_path / "none") is None


async def test_a_folder_on_a_network_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_module, "filesystem_of", lambda path: "nfs4")
    await refuses(tmp_path, StorageFailed, Code.NETWORK_FILESYSTEM)
    assert not DataFolder(tmp_path).log.exists()


async def refuses(folder: Path, kind: type[DagbokError], code: Code) -> None:
    """No host starts on this folder."""
    with pytest.raises(kind) as refused:
        async with asyncio.timeout(10), Dagbok.embedded(folder, projector="none"):
            pass
    assert refused.value.code == code
    assert "\n" not in str(refused.value)
