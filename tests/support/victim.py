"""The process that the kill tests kill: one run of every kind of work, on one data folder. It prints the result at
its end.

Each call of a worker appends a line to `calls.txt`, so that a test can see what was done twice.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from dagbok import Candidate, Dagbok, Outcome, TaskContext, TaskSpec, verifier, worker

CHILDREN = 30
FOLDER = Path(sys.argv[1])


def note(kind: str, task: str) -> None:
    """One atomic append per line."""
    file = os.open(FOLDER / "calls.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{kind} {task}\n".encode())
    os.close(file)


@worker("root", pure=True)
async def root(task: TaskContext) -> Outcome:
    """Decompose, then put together."""
    note(task.phase, task.task_id)
    if task.phase == "integrate":
        return Outcome.candidate(sorted(len(made.data()) for made in task.dependencies.values()))
    kinds = ("pure", "claimed", "sync")
    return Outcome.decompose(
        [
            TaskSpec(id=f"child-{n}", goal="make", worker=kinds[n % 3], verifier="check", inputs=n)
            for n in range(CHILDREN)
        ]
    )


def made(task: TaskContext) -> Outcome:
    """Every fifth result is too large for the log."""
    note("work", task.task_id)
    number = task.inputs if isinstance(task.inputs, int) else 0
    return Outcome.candidate(b"x" * (40_000 if number % 5 == 0 else 10 + number))


@worker("pure", pure=True)
async def pure(task: TaskContext) -> Outcome:
    """Claims with its outcome."""
    return made(task)


@worker("claimed")
async def claimed(task: TaskContext) -> Outcome:
    """Claims first."""
    return made(task)


@worker("sync", concurrency=2)
def sync(task: TaskContext) -> Outcome:
    """In a thread."""
    return made(task)


@verifier("check", version="1")
async def check(candidate: Candidate, task: TaskContext) -> bool:
    """Whatever is there."""
    return bool(candidate.data())


async def main() -> None:
    """Start the run, or go on with it."""
    async with Dagbok.embedded(FOLDER, root, pure, claimed, sync, check, snapshot_bytes=4_000) as dagbok:
        task = TaskSpec(id="root", goal="all", worker="root", verifier="check")
        result = await dagbok.run(task, key="victim")
        sys.stdout.write(f"{result.status} {result.json()}\n")


if __name__ == "__main__":
    asyncio.run(main())
