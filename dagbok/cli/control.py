"""`dagbok pause`, `resume`, `cancel` and `resolve`: commands to a run, whoever owns its folder."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable

from dagbok.agents.hosting.control import decide_once
from dagbok.cli import say
from dagbok.cli.options import Output, Place, settle
from dagbok.cli.quiet import quiet_logs
from dagbok.cli.reading import Reading, reading
from dagbok.events.codes import Code
from dagbok.events.envelope import Answer, Sender, run_command
from dagbok.events.errors import Refused
from dagbok.events.log.clock import system_ms
from dagbok.events.run.commands import CancelRun, PauseRun, ResolveBlock, ResumeRun, RunCommand
from dagbok.projections.views.graph.rows import RunRow
from dagbok.settings import Settings

Make = Callable[[Reading, RunRow], RunCommand]


def pause_run(name: str, reason: str, place: Place | None, output: Output | None) -> int:
    """Send `PauseRun`."""
    return send_command(name, lambda _found, _run: PauseRun(reason), "paused", place, output)


def resume_run(name: str, reason: str, place: Place | None, output: Output | None) -> int:
    """Send `ResumeRun`."""
    return send_command(name, lambda _found, _run: ResumeRun(reason), "resumed", place, output)


def cancel_run(name: str, reason: str, place: Place | None, output: Output | None) -> int:
    """Send `CancelRun`."""
    return send_command(name, lambda _found, _run: CancelRun(reason), "cancelled", place, output)


def resolve_block(name: str, task: str, note: str, place: Place | None, output: Output | None) -> int:
    """Send `ResolveBlock`."""

    def make(found: Reading, run: RunRow) -> RunCommand:
        return ResolveBlock(found.find_task(run, task).task, note)

    return send_command(name, make, "resolved", place, output)


def send_command(name: str, make: Make, done: str, place: Place | None, output: Output | None) -> int:
    """Send what `make` makes of the folder and the run, and tell what became of it. Raises `Refused`."""
    settings, how = settle(place, output)
    quiet_logs(settings)
    run, answer = asyncio.run(_send(settings, name, make))
    if not answer.accepted:
        raise Refused(Code(answer.code or Code.INTERNAL_ERROR), answer.reason, advice=answer.advice or None)
    if how.json:
        say.out_json({"run": run.run, "accepted": True, "events": answer.events, "at": answer.at})
    else:
        say.out(f"{done}: run {run.run}")
    return 0


async def _send(settings: Settings, name: str, make: Make) -> tuple[RunRow, Answer]:
    async with reading(settings) as found:
        run = found.find_run(name)
        command = make(found, run)
    sender = Sender(settings.tenant, settings.project, f"user:{settings.user}")
    envelope = run_command(sender, run.stream, command, id=secrets.token_hex(16), now_ms=system_ms())
    return run, await decide_once(found.folder, envelope)
