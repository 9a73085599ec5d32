"""What a snapshot has, when it is taken, and what is loaded from it; `tests/fault/` damages them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from dagbok.events.body import decode_body
from dagbok.events.codes import Code
from dagbok.events.errors import DagbokError, LogError, NotAllowed
from dagbok.events.log.memory import MemoryLog
from dagbok.events.log.port import EVENTS
from dagbok.events.run.events import EVENTS as ALL_EVENTS
from dagbok.events.run.events import Event, RunPaused
from dagbok.events.run.values import NULL
from dagbok.projections.artifacts.local import local_store
from dagbok.projections.artifacts.scope import SNAPSHOT_CHUNKS
from dagbok.projections.partition import PartitionState, apply
from dagbok.projections.reading import read_effective
from dagbok.projections.snapshots import ahead, cut, dirty, loader
from dagbok.projections.snapshots.dirty import DirtySegments
from dagbok.projections.snapshots.keeper import SnapshotKeeper
from dagbok.projections.snapshots.parts import decode_run, encode_head, encode_segment
from dagbok.projections.snapshots.sharing import Sharing
from dagbok.projections.snapshots.slots import FileSlots
from dagbok.projections.task_graph.state import TaskNode
from dagbok.testing import act
from dagbok.testing.make import candidate, decompose, start, task
from tests.support.histories import random_history
from tests.support.logbuilder import LogBuilder
from tests.support.scale import scale
from tests.support.snapshotting import NEVER_COLD_MS, fold, image, keeper_in

SEEDS = range(scale(12, 300))


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three tasks a segment, so that small runs have many."""
    monkeypatch.setattr(cut, "SEGMENT_TASKS", 3)
    monkeypatch.setattr(dirty, "SEGMENT_TASKS", 3)
    monkeypatch.setattr(ahead, "SEGMENT_TASKS", 3)


def family() -> LogBuilder:
    """A run of which a root was decomposed into eight tasks."""
    builder = LogBuilder()
    builder.send("one", start(task("root")))
    children = decompose(*[task(f"child-{n}", contract={"n": n}) for n in range(8)])
    builder.send("one", act.submit_outcome(builder.run("one"), "root", children))
    return builder


def finish(builder: LogBuilder, name: str) -> None:
    run = builder.run("one")
    builder.send("one", act.submit_outcome(run, name, candidate(name, outputs={"of": name})))
    builder.send("one", act.submit_verdict(run, name, "pass"))


def manifests(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.manifest")}


async def snapshot(keeper: SnapshotKeeper, state: PartitionState) -> None:
    """Take one now."""
    keeper.note(state, None, (), 10**9)
    keeper.save_if_due(state)
    await keeper.settled()


@pytest.mark.usefixtures("small_segments")
@pytest.mark.parametrize("seed", SEEDS)
async def test_a_run_of_many_segments_is_the_same_after_any_snapshot(seed: int, tmp_path: Path) -> None:
    builder = random_history(seed, 90)
    log = await builder.log()
    await fold(log, keeper_in(tmp_path, log, due_bytes=3_000))
    assert image(await fold(log, keeper_in(tmp_path, log), save=False)) == image(builder.state)


@pytest.mark.usefixtures("small_segments")
@pytest.mark.parametrize("seed", SEEDS)
async def test_it_is_the_same_when_segments_are_encoded_before_the_cut(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "STEP_SEGMENTS", 1)
    builder = random_history(seed, 90)
    log = await builder.log()
    await fold(log, keeper_in(tmp_path, log))
    assert image(await fold(log, keeper_in(tmp_path, log), save=False)) == image(builder.state)


@pytest.mark.usefixtures("small_segments")
async def test_between_two_batches_only_a_few_segments_are_encoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "STEP_SEGMENTS", 4)
    encoded = list[int]()

    def encode(tasks: Sequence[TaskNode]) -> bytes:
        encoded.append(len(tasks))
        return encode_segment(tasks)

    monkeypatch.setattr(ahead, "encode_segment", encode)
    monkeypatch.setattr(cut, "encode_segment", encode)
    builder = LogBuilder()
    builder.send("one", start(*[task(f"task-{n:03}") for n in range(60)]))
    log = await builder.log()
    keeper = keeper_in(tmp_path, log)
    state = await fold(log, keeper, save=False)
    steps = list[int]()
    while not manifests(tmp_path):
        encoded.clear()
        keeper.save_if_due(state)
        steps.append(len(encoded))
        await keeper.settled()
    assert steps == [4, 4, 4, 4, 4]
    assert image(await keeper_in(tmp_path, log).load()) == image(builder.state)


@pytest.mark.parametrize("seed", SEEDS)
async def test_every_task_that_a_commit_changes_is_in_a_changed_segment(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dirty, "SEGMENT_TASKS", 1)
    log = await random_history(seed, 90).log()
    state = PartitionState(0)
    while True:
        position, commits = await read_effective(log, 0, state.position, 1)
        if position == state.position:
            return
        for commit in commits:
            before = _tasks(state)
            events = decode_body(commit.stored_body, commit.seal.codec, commit.seal.raw_size)
            apply(state, commit, events)
            _check_noted(state, commit.seal.stream, events, before)
        state.position = position


def test_of_every_event_it_is_said_which_tasks_it_touches() -> None:
    assert set(dirty.TOUCHES) == set(ALL_EVENTS.values())


def test_an_event_of_which_nothing_is_said_touches_the_whole_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dirty, "SEGMENT_TASKS", 1)
    monkeypatch.setattr(dirty, "TOUCHES", {})
    run = family().run("one")
    noted = DirtySegments()
    noted.note(run, [RunPaused()])
    assert noted.take() == {run.stream: set(range(len(run.tasks)))}


@pytest.mark.usefixtures("small_segments")
async def test_a_snapshot_writes_only_the_segments_that_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder, written = family(), list[str]()
    log = await builder.log()
    keeper = keeper_in(tmp_path, log)
    await snapshot(keeper, await fold(log, keeper, save=False))

    def encode(tasks: Sequence[TaskNode]) -> bytes:
        written.extend(node.id for node in tasks)
        return encode_segment(tasks)

    finish(builder, "child-7")
    await builder.append_to(log, 2)
    state = await fold(log, keeper, save=False)
    monkeypatch.setattr(cut, "encode_segment", encode)
    await snapshot(keeper, state)
    assert sorted(written) == ["child-0", "child-1", "child-5", "child-6", "child-7", "root"]
    assert image(await keeper_in(tmp_path, log).load()) == image(builder.state)


async def test_a_snapshot_is_due_after_as_many_bytes_as_the_one_before_wrote(tmp_path: Path) -> None:
    log = await family().log()
    keeper = keeper_in(tmp_path, log, due_bytes=1_000)
    state = await fold(log, keeper, save=False)

    async def taken(size_bytes: int) -> bool:
        before = manifests(tmp_path)
        keeper.note(state, None, (), size_bytes)
        keeper.save_if_due(state)
        await keeper.settled()
        return manifests(tmp_path) != before

    assert await taken(1_000)
    assert not await taken(1)
    assert await taken(1_000_000)
    assert not await taken(999)
    assert await taken(1)


async def test_the_older_snapshot_stays_until_the_newer_one_is_whole(tmp_path: Path) -> None:
    builder, disk_full = family(), False

    def before_manifest() -> None:
        if disk_full:
            raise OSError("no space left")

    log = await builder.log()
    store = local_store(tmp_path).within(SNAPSHOT_CHUNKS)
    keeper = SnapshotKeeper(log, 0, store, FileSlots(tmp_path, 0), before_manifest=before_manifest)
    state = await fold(log, keeper, save=False)
    await snapshot(keeper, state)
    kept = manifests(tmp_path)
    disk_full = True
    await snapshot(keeper, state)
    assert manifests(tmp_path) == kept
    assert image(await keeper_in(tmp_path, log).load()) == image(builder.state)


@pytest.mark.parametrize(
    ("error", "level"),
    [(NotAllowed("commands[0]: not let in"), "error"), (LogError("no answer", code=Code.LOG_UNREACHABLE), "warning")],
    ids=["not allowed", "away"],
)
async def test_commands_that_may_not_be_removed_are_an_alarm_with_what_to_do_and_cost_no_snapshot(
    error: DagbokError, level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuses(log: MemoryLog, topic: str, partition: int, offset: int) -> None:
        raise error

    monkeypatch.setattr(MemoryLog, "delete_before", refuses)
    log = await family().log()
    keeper = keeper_in(tmp_path, log)
    state = await fold(log, keeper, save=False)
    with capture_logs() as lines:
        await snapshot(keeper, state)
        await snapshot(keeper, state)
    (told,) = [line for line in lines if line["event"] == "snapshot.not_tidied"]
    assert told["log_level"] == level
    assert ("Delete on the topic commands" in told.get("advice", "")) == (level == "error")
    assert len(manifests(tmp_path)) == 2


async def test_a_snapshot_of_another_fold_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = await family().log()
    await fold(log, keeper_in(tmp_path, log))
    monkeypatch.setattr(loader, "fold_name", lambda: "another")
    assert (await keeper_in(tmp_path, log).load()).position.next_offset == 0


async def test_of_a_log_that_became_shorter_only_a_snapshot_of_what_is_left_is_read(tmp_path: Path) -> None:
    builder = family()
    log = await builder.log()
    keeper = keeper_in(tmp_path, log)
    await snapshot(keeper, await fold(log, keeper, until=1, save=False))
    await snapshot(keeper, await fold(log, keeper, save=False))
    assert (await keeper_in(tmp_path, log).load()).position.next_offset == 2

    shorter = MemoryLog()
    await shorter.append(EVENTS, 0, builder.records[:1])
    assert (await keeper_in(tmp_path, shorter).load()).position.next_offset == 1


async def test_a_closed_run_is_loaded_when_it_is_wanted_and_an_open_one_always(tmp_path: Path) -> None:
    builder = LogBuilder()
    for name in ("closed", "open"):
        builder.send(name, start(task("only")))
    builder.send("closed", act.submit_outcome(builder.run("closed"), "only", candidate(1)))
    builder.send("closed", act.submit_verdict(builder.run("closed"), "only", "pass"))
    builder.now_ms += 10_000
    builder.send("open", act.start_attempt(builder.run("open"), "only"))
    log = await builder.log()
    keeper = keeper_in(tmp_path, log)
    await snapshot(keeper, await fold(log, keeper, save=False))

    assert set((await keeper_in(tmp_path, log, cold_after_ms=NEVER_COLD_MS).load()).runs) == {"run:closed", "run:open"}
    keeper = keeper_in(tmp_path, log, cold_after_ms=9_000)
    state = await keeper.load()
    assert set(state.runs) == {"run:open"}
    keeper.thaw(state, "run:closed")
    keeper.thaw(state, "run:never started")
    assert image(state) == image(builder.state)


def test_a_loaded_run_shares_its_ids_and_keeps_no_buffer_alive() -> None:
    builder = family()
    finish(builder, "child-3")
    run = builder.run("one")
    loaded = decode_run(encode_head(run), [encode_segment(list(run.tasks.values()))], Sharing())
    assert msgspec.json.encode(loaded) == msgspec.json.encode(run)
    root, child = loaded.tasks["root"], loaded.tasks["child-3"]
    ids = {id(key) for key in loaded.tasks}
    assert {id(dep) for dep in root.deps} < ids
    assert {id(dependent) for dependent in child.dependents} < ids
    assert root.outputs is NULL
    for payload in (child.spec.contract, child.outputs):
        assert payload.copy() is payload, "a view of what was decoded"


def _tasks(state: PartitionState) -> dict[tuple[str, str], bytes]:
    return {
        (stream, id): msgspec.json.encode(node) for stream, run in state.runs.items() for id, node in run.tasks.items()
    }


def _check_noted(
    state: PartitionState, stream: str | None, events: list[Event], before: dict[tuple[str, str], bytes]
) -> None:
    noted = DirtySegments()
    if stream is not None:
        noted.note(state.runs[stream], events)
    numbers = noted.take()
    for (where, id), node in _tasks(state).items():
        if before.get((where, id)) != node:
            assert state.runs[where].tasks[id].order in numbers[where], f"{id} changed unnoted by {events}"
