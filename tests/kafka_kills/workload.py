"""The run that goes on while processes are killed: dependencies, a decomposition, large results, attempts that fail,
verdicts that do not pass, and workers of each kind."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from dagbok import Candidate, Outcome, TaskContext, TaskSpec, Verifier, Worker, verifier, worker

CHILDREN: Final = 12
LEASE_S: Final = 1.5
LONG_S: Final = 600.0
LARGE: Final = 40_000
KINDS: Final = ("made-purely", "made-claimed", "made-in-thread")


def job() -> list[TaskSpec]:
    """A root that decomposes, and a task that waits for it."""
    return [
        _spec("root", "grows", None),
        _spec("last", "counts", None, ("root",)),
    ]


def long_tasks(count: int) -> list[TaskSpec]:
    """They take ten minutes each, half of them in threads, which nobody can stop."""
    return [_spec(f"long-{n}", ("long", "long-in-thread")[n % 2], None) for n in range(count)]


def verified_in_all() -> int:
    """So many tasks are verified when a run of `job` succeeds."""
    return CHILDREN + 2


def definitions() -> Sequence[Worker | Verifier]:
    """Who does the work."""
    return grows, counts, made_purely, made_claimed, made_in_thread, long, long_in_thread, second_time


def grew(before: list[int] | None, value: list[int]) -> bool:
    """Whether an attempt may have put this down behind what was there: it never forgets what others did."""
    known = before or []
    return value[: len(known)] == known and len(value) == len(known) + 1


@worker("grows", pure=True)
async def grows(task: TaskContext) -> Outcome:
    """Decompose into chains of three; then tell how large it has all become."""
    if task.phase == "integrate":
        return Outcome.candidate(sum(len(made.data()) for made in task.dependencies.values()))
    children = [
        _spec(f"child-{n}", KINDS[n % 3], n, (f"child-{n - 1}",) if n % 3 else ())
        for n in range(CHILDREN)
    ]  # fmt: skip
    return Outcome.decompose(children)


@worker("counts", pure=True)
async def counts(task: TaskContext) -> Outcome:
    """What the root told."""
    return Outcome.candidate([made.json() for made in task.dependencies.values()])


@worker("made-purely", pure=True)
async def made_purely(task: TaskContext) -> Outcome:
    """Claims with its outcome."""
    return _made(task)


@worker("made-claimed")
async def made_claimed(task: TaskContext) -> Outcome:
    """Claims first, and tells its session before and behind its work."""
    attempts = task.session.load() or []
    await task.session.save([*attempts, task.epoch])
    outcome = _made(task)
    await task.session.save([*attempts, task.epoch, -task.epoch])
    return outcome


@worker("made-in-thread", concurrency=2)
def made_in_thread(task: TaskContext) -> Outcome:
    """In a thread."""
    return _made(task)


@worker("long", concurrency=4)
async def long(task: TaskContext) -> Outcome:
    """Takes ten minutes."""
    await asyncio.sleep(LONG_S)
    return _made(task)


@worker("long-in-thread", concurrency=4)
def long_in_thread(task: TaskContext) -> Outcome:
    """Blocks a thread for ten minutes."""
    time.sleep(LONG_S)
    return _made(task)


@verifier("second-time", version="1")
async def second_time(candidate: Candidate, task: TaskContext) -> bool:
    """What a number divisible by 7 makes passes from its second attempt on."""
    number = task.inputs
    return not (isinstance(number, int) and number % 7 == 3 and candidate.data().startswith(b"1 "))


def _made(task: TaskContext) -> Outcome:
    number = task.inputs if isinstance(task.inputs, int) else 0
    if number % 5 == 4 and task.attempt == 1:
        raise ValueError("the first attempt fails")
    body = b"x" * (LARGE if number % 5 == 0 else number)
    return Outcome.candidate(f"{task.attempt} ".encode() + body)


def _spec(id: str, worker: str, inputs: int | None, after: tuple[str, ...] = ()) -> TaskSpec:
    return TaskSpec(
        id=id,
        goal=f"do {id}",
        worker=worker,
        verifier="second-time",
        inputs=inputs,
        depends_on=after,
        lease_s=LEASE_S,
        max_attempts=20,
    )
