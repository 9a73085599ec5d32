"""`dagbok pause`, `resume`, `cancel`, `resolve` and `retry`: commands to a run, whoever owns its folder."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from dagbok.cli import say
from dagbok.cli.advised import advised
from dagbok.cli.asking import decide
from dagbok.cli.options import Output, Place, settle
from dagbok.cli.ownership import who_goes_on
from dagbok.cli.quiet import quiet_logs
from dagbok.cli.reading import Reading, reading
from dagbok.cli.text import short
from dagbok.events.codes import Code
from dagbok.events.envelope import Answer
from dagbok.events.errors import Refused
from dagbok.events.run.commands import CancelRun, CancelTask, PauseRun, ResolveBlock, ResumeRun, RetryTask, RunCommand
from dagbok.projections.views.graph.rows import RunRow
from dagbok.sending import client_command
from dagbok.settings import Settings

Make = Callable[[Reading, RunRow], RunCommand]


def pause_run(name: str, reason: str, place: Place | None, output: Output | None) -> int:
    """Send `PauseRun`."""
    return send_command(name, lambda _found, _run: PauseRun(reason), "paused", place, output)


def resume_run(name: str, reason: str, place: Place | None, output: Output | None) -> int:
    """Send `ResumeRun`."""
    return send_command(name, lambda _found, _run: ResumeRun(reason), "resumed", place, output, goes_on=True)


def cancel_run(name: str, task: str | None, reason: str, place: Place | None, output: Output | None) -> int:
    """Send `CancelRun`, or for one task `CancelTask`."""

    def make(found: Reading, run: RunRow) -> RunCommand:
        return CancelRun(reason) if task is None else CancelTask(found.find_task(run, task).task, reason)

    return send_command(name, make, "cancelled" if task is None else f"cancelled task {task}", place, output)


def resolve_block(name: str, task: str, note: str, place: Place | None, output: Output | None) -> int:
    """Send `ResolveBlock`."""

    def make(found: Reading, run: RunRow) -> RunCommand:
        return ResolveBlock(found.find_task(run, task).task, note)

    return send_command(name, make, "resolved", place, output, goes_on=True)


def retry_task(name: str, task: str, note: str, place: Place | None, output: Output | None) -> int:
    """Send `RetryTask`."""

    def make(found: Reading, run: RunRow) -> RunCommand:
        return RetryTask(found.find_task(run, task).task, note)

    return send_command(name, make, f"retried task {task}", place, output, goes_on=True)


def send_command(
    name: str,
    make: Make,
    done: str,
    place: Place | None,
    output: Output | None,
    *,
    goes_on: bool = False,
    told: Mapping[str, str] | None = None,
    notes: Callable[[Settings], Sequence[str]] = lambda _: (),
) -> int:
    """Send what `make` makes of the folder and the run, and tell what became of it. `goes_on`: work follows from it, so
    say when nobody is there to do it. `told`: what the JSON has besides; `notes`: what is to be said at last. Raises
    `Refused`."""
    settings, how = settle(place, output)
    quiet_logs(settings)
    run, answer = asyncio.run(_send(settings, name, make))
    if how.json:
        say.out_json({"run": run.run, **(told or {}), "accepted": True, "events": answer.events, "at": answer.at})
    else:
        say.out(f"{done}: run {run.run}")
        if goes_on:
            for line in who_goes_on(settings):
                say.note(line)
        for line in notes(settings):
            say.note(line)
    return 0


def accepted(answer: Answer, run: str, settings: Settings) -> Answer:
    """The answer, unless it is a refusal: then raise it, with advice for a person at a terminal."""
    if answer.accepted:
        return answer
    code = Code(answer.code or Code.INTERNAL_ERROR)
    advice = answer.advice or code.meaning.advice
    if advice == code.meaning.advice and code in FOR_PEOPLE:
        show, retry, another = (
            advised(settings, *words)
            for words in (("show", short(run)), ("retry", short(run), "TASK"), ("run", "FILE"))
        )
        advice = FOR_PEOPLE[code].format(show=show, retry=retry, another=another)
    raise Refused(code, answer.reason, advice=advice)


FOR_PEOPLE = {
    Code.VERSION_CONFLICT: "see {show}: it is no longer, or not yet, as this command needs it",
    Code.RUN_CLOSED: "see {show}; a failed task runs again by {retry}, and another run begins by {another}",
}
"""Instead of what programs are advised to do."""


async def _send(settings: Settings, name: str, make: Make) -> tuple[RunRow, Answer]:
    async with reading(settings) as found:
        run = found.find_run(name)
        command = make(found, run)
    envelope = client_command(run.run, command, tenant=settings.tenant, project=settings.project, user=settings.user)
    return run, accepted(await decide(settings, envelope), run.run, settings)
