"""`dagbok artifact get` and `ls`, and the files that a run's roots become."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from dagbok.agents.workers.reader import ArtifactReader
from dagbok.cli import say
from dagbok.cli.advised import advised
from dagbok.cli.options import Output, Place, settle
from dagbok.cli.places import artifacts_place
from dagbok.cli.quiet import quiet_logs
from dagbok.cli.reading import Reading, reading
from dagbok.cli.text import clean, columns, plural, short
from dagbok.cli.wiring import artifact_reader
from dagbok.events.codes import Code
from dagbok.events.envelope import Input
from dagbok.events.errors import Refused, StorageFailed
from dagbok.projections.artifacts.scope import Scope
from dagbok.projections.views.graph.rows import ArtifactRow, RunRow, TaskRow
from dagbok.settings import Settings

DEFAULT_NAME = "result"


def get(run: str, task: str, name: str | None, target: Path | None, place: Place | None, output: Output | None) -> int:
    """Write one published artifact, whole or not at all."""
    settings, how = settle(place, output)
    quiet_logs(settings)
    row, data, instead = asyncio.run(_get(settings, run, task, name))
    for line in () if how.json else instead:
        say.note(line)
    if target is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return 0
    write_file(target, data)
    if how.json:
        say.out_json({**_told(row), "path": str(target.absolute())})
    else:
        say.note(f"{plural(len(data), 'byte')} written to {target}")
    return 0


def list_artifacts(run: str, place: Place | None, output: Output | None) -> int:
    """Print what a run has published, in the order in which its tasks came."""
    settings, how = settle(place, output)
    quiet_logs(settings)
    found = asyncio.run(_published(settings, run))
    if how.json:
        say.out_json([{**_told(row), "goal": goal} for row, goal in found])
        return 0
    head = ["TASK", "NAME", "BYTES", "TYPE", "SHA-256", "GOAL"]
    lines = [
        [short(row.task), clean(row.name, 40), str(row.size_bytes), row.media_type, row.sha256[:12], clean(goal)]
        for row, goal in found
    ]
    for line in columns([head, *lines]):
        say.out(line)
    return 0


def write_file(target: Path, data: bytes) -> None:
    """Replace `target`, so that nobody sees half of it. Raises `StorageFailed`."""
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        beside.write_bytes(data)
        beside.replace(target)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise StorageFailed(f"cannot write {target}: {error.strerror or error}") from error


async def _get(settings: Settings, run: str, task: str, name: str | None) -> tuple[ArtifactRow, bytes, Sequence[str]]:
    """With what to say of it: that it is of the task that took the place of the one that was named."""
    async with reading(settings) as found:
        run_row = found.find_run(run)
        named = found.find_task(run_row, task)
        stands = _in_its_place(found, run_row, named)
        row = _find(found, run_row, named, stands, name)
        reader: ArtifactReader = artifact_reader(artifacts_place(settings), found.log)
        said = [] if stands.task == named.task else [f"{_superseded(named, stands)}: this is what that published"]
        return row, reader.read(Scope(found.tenant, found.project), Input(row.task, row.ref)), said


def _in_its_place(found: Reading, run: RunRow, task: TaskRow) -> TaskRow:
    """The task itself, or the last of those that took its place."""
    while task.superseded_by is not None:
        task = found.find_task(run, task.superseded_by)
    return task


def _superseded(named: TaskRow, stands: TaskRow) -> str:
    return f"task {short(named.task)} was superseded by {short(stands.task)}"


def _find(found: Reading, run_row: RunRow, named: TaskRow, task_row: TaskRow, name: str | None) -> ArtifactRow:
    rows = found.queries.artifacts(found.tenant, found.project, run_row.run, task_row.task, state="published")
    wanted = name or (rows[0].name if len(rows) == 1 else DEFAULT_NAME)
    for row in rows:
        if row.name == wanted:
            return row
    if not rows:
        whose = f"{_superseded(named, task_row)}, which" if task_row.task != named.task else f"task {task_row.task}"
        said = f"{whose} has published nothing: it is {task_row.status}"
        see = f"see {advised(found.settings, 'artifact', 'ls', short(run_row.run))}"
        raise Refused(Code.NOT_FOUND, said, advice=see)
    names = ", ".join(row.name for row in rows)
    raise Refused(
        Code.NOT_FOUND, f"task {task_row.task} has published no artifact {wanted}", advice=f"name one of: {names}"
    )


async def _published(settings: Settings, run: str) -> list[tuple[ArtifactRow, str]]:
    """With the goals of their tasks, in the order in which the tasks came."""
    async with reading(settings) as found:
        whose = (found.tenant, found.project, found.find_run(run).run)
        rows = found.queries.artifacts(*whose, state="published")
        tasks = {task.task: task for task in found.queries.list_tasks(*whose)}
        rows.sort(key=lambda row: (tasks[row.task].number, row.epoch, row.item))
        return [(row, tasks[row.task].goal) for row in rows]


def _told(row: ArtifactRow) -> dict[str, object]:
    told: dict[str, object] = msgspec.to_builtins(row)
    return {key: told[key] for key in ("run", "task", "name", "media_type", "size_bytes", "sha256", "published_ms")}
