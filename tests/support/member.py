"""A process on a data folder, steered by lines of JSON: `python -m tests.support.member FOLDER OWN [serves]`.

It says `{"joined": …}` first, `{"owned": …}` when it decides, and one line for each that it is told:

    {"start": number, "key", "how", "name"}  →  {"started": run}
    {"wait": run}                           →  {"ended": [status, what its tasks made]}
    {"status": run}                         →  {"status": …}
    {"pause": run}, resume, cancel          →  {"accepted": true} or {"refused": code}

Each call of a worker appends a line to `calls.txt`: process, task, epoch. With `how` "gate" it waits until a file
`gate` is there.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from dagbok import Candidate, Dagbok, Outcome, Refused, TaskContext, TaskSpec, verifier, worker
from dagbok.agents.hosting.embedded import Own

FOLDER = Path(sys.argv[1])


@worker("work", concurrency=4)
async def work(task: TaskContext) -> Outcome:
    """Says who called it, waits if it is told to, and returns its input."""
    number, how = task.inputs
    file = os.open(FOLDER / "calls.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{os.getpid()} {task.task_id} {task.epoch}\n".encode())
    os.close(file)
    while how == "gate" and not (FOLDER / "gate").exists():  # noqa: ASYNC110 - others open it
        await asyncio.sleep(0.01)
    if how == "slow":
        await asyncio.sleep(0.02)
    return Outcome.candidate(number)


@verifier("check", version="1")
async def check(candidate: Candidate, task: TaskContext) -> bool:
    """Whatever it is."""
    return True


def say(**told: Any) -> None:
    """One line."""
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


async def obey(dagbok: Dagbok, told: dict[str, Any]) -> None:
    """Do what a line says."""
    whose = {"tenant": told.get("tenant", "local"), "project": "default"}
    try:
        if "start" in told:
            tasks = [
                TaskSpec(
                    id=f"{told.get('name', 't')}{n}",
                    goal="work",
                    worker="work",
                    verifier="check",
                    inputs=[n, told.get("how", "")],
                )
                for n in range(told["start"])
            ]
            say(started=await dagbok.start(tasks, key=told.get("key"), **whose))
        elif "wait" in told:
            result = await dagbok.wait(told["wait"], **whose)
            say(ended=[result.status, sorted(root.json() for root in result.roots.values())])
        elif "status" in told:
            say(status=dagbok.status(told["status"], **whose))
        elif "pause" in told:
            say(accepted=(await dagbok.pause(told["pause"], **whose)).accepted)
        elif "resume" in told:
            say(accepted=(await dagbok.resume(told["resume"], **whose)).accepted)
        elif "cancel" in told:
            say(accepted=(await dagbok.cancel(told["cancel"], **whose)).accepted)
    except Refused as error:
        say(refused=error.code.value)


async def tell_owned(dagbok: Dagbok) -> None:
    """Say when this process decides."""
    await dagbok.host.owned.wait()
    say(owned=True)


async def main(own: Own, serve: bool) -> None:
    """Until the input ends."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async with Dagbok.embedded(FOLDER, work, check, serve=serve, own=own, projector="none") as dagbok:
        say(joined=dagbok.host.process, owns=dagbok.host.owns)
        tasks = {asyncio.create_task(tell_owned(dagbok))}
        while line := await reader.readline():
            tasks.add(asyncio.create_task(obey(dagbok, json.loads(line))))
        for task in tasks:
            task.cancel()


if __name__ == "__main__":
    owning: Any = sys.argv[2]
    asyncio.run(main(owning, "serves" in sys.argv))
