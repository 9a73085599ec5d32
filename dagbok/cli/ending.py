"""How `dagbok run` says what a run came to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dagbok.cli import say
from dagbok.cli.advised import advised, near
from dagbok.cli.exits import exit_of_status
from dagbok.cli.outputs import OutputFile
from dagbok.cli.reading import Reading, reading
from dagbok.cli.show import NOTE, budget_advice, print_run
from dagbok.cli.text import clean, columns, counts, duration, plural, short
from dagbok.events.codes import Code
from dagbok.events.errors import DagbokError
from dagbok.events.log.clock import system_ms
from dagbok.projections.views.graph.rows import RunRow
from dagbok.results import RunResult
from dagbok.settings import Settings

NAMED = 5
OPEN = ("waiting", "ready", "running", "verifying", "backoff")
"""Tasks of a run that is settled: nothing more happens to them as it is."""
BEHIND = 20
"""So often the tables of a log on Kafka are looked into, until they have the end of the run."""


@dataclass(frozen=True)
class Ended:
    """A run that came to an end. `resumed`: an earlier process had begun it; `elapsed_s`: of this process alone;
    `several`: it has more than one root."""

    result: RunResult
    resumed: bool
    elapsed_s: float
    files: Sequence[OutputFile]
    several: bool


async def tell(ended: Ended, settings: Settings, *, quiet: bool, as_json: bool) -> int:
    """Print it, and return the exit status."""
    if as_json:
        say.out_json(_as_json(ended))
    else:
        if not quiet:
            await _tree(ended, settings)
        for line in (*await _budget_lines(ended, settings), *_last_lines(ended, settings)):
            say.out(line)
    return exit_of_status(ended.result.status)


async def _tree(ended: Ended, settings: Settings) -> None:
    if settings.kafka is not None and not settings.database:
        say.note("no database is named (--database, or DAGBOK_DATABASE), which would have the tree")
        return
    try:
        async with reading(settings) as found:
            print_run(found, await _up_to_date(found, ended.result), timed=False)
    except DagbokError as error:
        # The run has ended as the log says; the tables are only another view of it.
        say.note(f"the tree cannot be shown: {error}")


async def _up_to_date(found: Reading, result: RunResult) -> RunRow:
    """The run, as soon as the tables have its last event. On Kafka others write them, and may be behind."""
    for left in reversed(range(BEHIND if found.on_kafka else 1)):
        run = found.queries.get_run(found.tenant, found.project, result.run)
        if run is not None and run.last_seq >= result.last_event:
            return run
        if left:
            await found.more()
    say.note("the tables are behind: this is what they have of the run")
    return found.find_run(result.run)


async def _budget_lines(ended: Ended, settings: Settings) -> Sequence[str]:
    if ended.result.code != Code.BUDGET_EXHAUSTED:
        return ()
    see = f"out of budget: see {advised(settings, 'limits', short(ended.result.run))}"
    if settings.kafka is not None:
        return (see,)
    try:
        async with reading(settings) as found:
            return budget_advice(found, found.find_run(ended.result.run))
    except DagbokError as error:
        return (f"{see} ({error})",)


def _last_lines(ended: Ended, settings: Settings) -> list[str]:
    result = ended.result

    def how(command: str, *words: str) -> str:
        return advised(settings, command, short(result.run), *words)

    lines = _file_lines(ended)
    lines += [f"failed: {short(task)} ({code})" for task, code in list(result.failed.items())[:NAMED]]
    if result.status == "blocked":
        for task, code in list(result.blocked.items())[:NAMED]:
            lines.append(f"blocked: {short(task)} ({code}): {how('resolve', short(task), NOTE)}")
        lines.append("then the same command goes on")
    elif result.status in ("failed", "cancelled"):
        first_failed = list(result.failed)[:1]
        lines += [f"see {how('show')}; the same command begins another run"]
        lines += [f"to go on with this one: {how('retry', short(task))}" for task in first_failed]
    lines.append(f"{result.status}: {_came_to(result)} in {_took(ended)}")
    return lines


def _came_to(result: RunResult) -> str:
    """`3 tasks`; where not all came to a good end, `3 tasks (1 failed, 2 not finished)`."""
    tasks = plural(result.tasks, "task")
    if result.status == "succeeded":
        return tasks
    open_tasks = sum(result.counts.get(status, 0) for status in OPEN)
    settled = {status: count for status, count in result.counts.items() if status not in OPEN}
    words = [counts(settled.items()), f"{open_tasks} not finished" if open_tasks else ""]
    return f"{tasks} ({', '.join(word for word in words if word)})"


def _took(ended: Ended) -> str:
    """The run from its start, as everybody tells it who looks; and this command, where it came later."""
    result = ended.result
    end_ms = result.closed_ms if result.closed_ms is not None else system_ms()
    took = duration(max(0, end_ms - result.started_ms))
    return f"{took}, {duration(ended.elapsed_s * 1000)} of it in this command" if ended.resumed else took


def _file_lines(ended: Ended) -> list[str]:
    """`result: path`, or with several roots a table that says whose each file is."""
    paths = [clean(near(file.path), 10_000) for file in ended.files]
    if not ended.several:
        return [f"{clean(file.view.name)}: {path}" for file, path in zip(ended.files, paths, strict=True)]
    of = [(short(file.task), f"{clean(file.view.name)}:") for file in ended.files]
    return list(columns([[*named, path] for named, path in zip(of, paths, strict=True)]))


def _as_json(ended: Ended) -> dict[str, object]:
    result = ended.result
    return {
        "run": result.run,
        "status": result.status,
        "code": result.code,
        "resumed": ended.resumed,
        "elapsed_s": round(ended.elapsed_s, 3),
        "tasks": result.tasks,
        "counts": dict(result.counts),
        "failed": dict(result.failed),
        "blocked": dict(result.blocked),
        "artifacts": [_file_as_json(file) for file in ended.files],
    }


def _file_as_json(file: OutputFile) -> dict[str, object]:
    ref = file.view.ref
    return {
        "task": file.task,
        "name": ref.name,
        "path": str(file.path),
        "media_type": ref.media_type,
        "size_bytes": ref.size_bytes,
        "sha256": ref.sha256,
    }
