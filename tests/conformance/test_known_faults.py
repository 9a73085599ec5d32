"""Faults that users of comparable systems reported, each as the test that dagbok does not have it: the cases F of
`docs/conformance.md` that no other test has."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import msgspec
import pytest

from dagbok import Candidate, Dagbok, Outcome, RunResult, TaskContext, TaskSpec, Worker, verifier, worker
from dagbok.events.body import decode_body
from dagbok.events.errors import DagbokError
from dagbok.events.log.port import EVENTS
from dagbok.events.run.commands import decode_run_command
from tests.support.hosts import hosted, spec, until
from tests.support.scale import scale

MEGABYTE = 1_000_000


async def test_a_successor_starts_when_its_own_inputs_are_there(tmp_path: Path) -> None:
    """F22: a slow sibling holds nobody back."""
    release, followed = asyncio.Event(), asyncio.Event()

    @worker("slow")
    async def slow(task: TaskContext) -> Outcome:
        await release.wait()
        return Outcome.candidate("slow")

    @worker("quick")
    async def quick(task: TaskContext) -> Outcome:
        if task.task_id == "after":
            followed.set()
        return Outcome.candidate("quick")

    async with hosted(tmp_path, slow, quick) as dagbok:
        after = spec("quick", id="after", depends_on=["first"])
        run = await dagbok.start([spec("slow"), spec("quick", id="first"), after])
        await followed.wait()
        assert dagbok.progress(run) == {"running": 2, "verified": 1}
        release.set()
        assert (await dagbok.wait(run)).succeeded


@worker("split", pure=True)
async def split(task: TaskContext) -> Outcome:
    """A shard of no-op tasks, or shards of them."""
    if task.phase == "integrate":
        return Outcome.candidate(len(task.dependencies))
    sizes = task.inputs
    if len(sizes) == 1:
        return Outcome.decompose([spec("nothing") for _ in range(sizes[0])])
    return Outcome.decompose([spec("split", inputs=[size]) for size in sizes])


@worker("nothing", pure=True)
async def nothing(task: TaskContext) -> Outcome:
    """As little as possible."""
    return Outcome.candidate(1)


def unaudited(folder: Path) -> AbstractAsyncContextManager[Dagbok]:
    """A host without the audit of its whole log at the end, which would take longer than the run."""
    return Dagbok.embedded(folder, split, nothing, yes_to_all, projector="none")


async def test_a_run_with_very_many_events_goes_on_and_can_be_stopped(tmp_path: Path) -> None:
    """F23: 200,000 events in full scale; the limit of a run is what its author sets."""
    shards = scale(2, 21)
    async with asyncio.timeout(300), unaudited(tmp_path) as dagbok:
        sizes = [scale(500, 2_000)] * shards
        run = await dagbok.start(spec("split", inputs=sizes))
        assert (await dagbok.wait(run)).succeeded
        found = dagbok.host.find(f"run:{run}")
        assert found is not None
        assert found.stream_seq > scale(5_000, 200_000)
        other = await dagbok.start(spec("split", inputs=sizes))
        await until(dagbok, lambda: dagbok.progress(other).get("verified", 0) > 100)
        assert (await dagbok.cancel(other)).accepted
        assert (await dagbok.wait(other)).status == "cancelled"


async def test_payloads_far_above_every_limit_of_a_record_travel_by_reference(tmp_path: Path) -> None:
    """F23, F24: fifty steps of a megabyte each; no record carries the output of a step, and no step those of all."""
    steps = scale(12, 50)

    @worker("step", pure=True)
    async def step(task: TaskContext) -> Outcome:
        before = [artifacts.data() for artifacts in task.dependencies.values()]
        assert [len(data) for data in before] == [MEGABYTE] * bool(task.inputs)
        return Outcome.candidate(task.inputs.to_bytes(4, "big") * (MEGABYTE // 4))

    async with hosted(tmp_path, step) as dagbok:
        specs = [spec("step", id=f"s{n}", inputs=n, depends_on=[f"s{n - 1}"] if n else []) for n in range(steps)]
        result = await dagbok.run(specs)
        assert result.roots[f"s{steps - 1}"].data() == (steps - 1).to_bytes(4, "big") * (MEGABYTE // 4)
        end = (await dagbok.host.log.bounds(EVENTS, 0)).end
        records = await dagbok.host.log.read(EVENTS, 0, 0, end)
        assert max(len(record.value) for record in records) < 20_000


async def test_a_task_takes_as_many_bytes_in_a_large_run_as_in_a_small_one(tmp_path: Path) -> None:
    """F26."""
    few, many = 100, scale(1_500, 10_000)
    kept = {tasks: await _bytes_per_task(tmp_path / str(tasks), tasks) for tasks in (few, many)}
    assert kept[many] < 1.3 * kept[few]


async def _bytes_per_task(folder: Path, tasks: int) -> float:
    async with unaudited(folder) as dagbok:
        assert (await dagbok.run(spec("split", inputs=[tasks]))).succeeded
        end = (await dagbok.host.log.bounds(EVENTS, 0)).end
        records = await dagbok.host.log.read(EVENTS, 0, 0, end)
    return sum(len(record.value) for record in records) / tasks


async def test_readers_of_the_tables_disturb_nobody_while_a_large_run_is_on(tmp_path: Path) -> None:
    """F27: log and tables are separate files, each with one writer; nobody meets a locked database."""
    async with asyncio.timeout(300), Dagbok.embedded(tmp_path, split, nothing, yes_to_all) as dagbok:
        running = asyncio.create_task(
            dagbok.run(TaskSpec(goal="all", worker="split", verifier="yes", inputs=[scale(1_000, 5_000)] * 2))
        )
        looks = await asyncio.gather(*[_look_until(dagbok, running) for _ in range(5)])
        assert (await running).succeeded
        assert all(looks)


async def _look_until(dagbok: Dagbok, running: asyncio.Task[RunResult]) -> int:
    """Ask for the list of runs again and again; how often it came."""
    looks = 0
    while not running.done():
        assert len((await dagbok.list_runs()).runs) <= 1
        looks += 1
    return looks


@verifier("yes", version="1")
async def yes_to_all(candidate: Candidate, task: TaskContext) -> bool:
    """Whatever it is."""
    return True


async def test_a_run_goes_on_under_changed_code_and_what_was_done_is_not_done_again(tmp_path: Path) -> None:
    """F28: recovery replays events, never the code of workers."""
    calls: list[str] = []
    begun = asyncio.Event()

    def version(number: int) -> Worker:
        @worker("changes")
        async def changes(task: TaskContext) -> Outcome:
            calls.append(f"{task.task_id} by {number}")
            if number == 1 and task.task_id == "b":
                begun.set()
                await asyncio.Event().wait()
            return Outcome.candidate(number)

        return changes

    specs = [spec("changes", id="a"), spec("changes", id="b", depends_on=["a"])]
    async with hosted(tmp_path, version(1)) as dagbok:
        run = await dagbok.start(specs)
        await begun.wait()
    async with hosted(tmp_path, version(2)) as dagbok:
        assert (await dagbok.wait(run)).json() == 2
    assert calls == ["a by 1", "b by 1", "b by 2"]


@pytest.mark.parametrize(
    "type",
    ["os.system", "builtins.eval", "__reduce__", "dagbok.events.run.events.RunStarted", "Event", "", "RunStarted "],
)
def test_a_payload_that_names_a_class_is_data(type: str) -> None:
    """F30: a type is a word of the list or it is unknown; nothing is looked up, imported or called."""
    event = {"type": type, "version": 1, "data": {"__class__": "os.system", "py/object": "os.system"}}
    body = msgspec.json.encode({"events": [event]})
    with pytest.raises(DagbokError):
        decode_body(body, "json", len(body))
    with pytest.raises(KeyError):
        decode_run_command(type, b"{}")
