"""Workers and verifiers of the tests, as `--import` names them."""

from __future__ import annotations

import asyncio

from dagbok import Candidate, Outcome, TaskContext, verifier, worker


@worker("ones", pure=True)
async def ones(task: TaskContext) -> Outcome:
    """Always the same."""
    return Outcome.candidate(1)


@worker("long")
async def long(task: TaskContext) -> Outcome:
    """Works until it is stopped."""
    await asyncio.Event().wait()
    raise AssertionError


@worker("second try", pure=True)
async def second_try(task: TaskContext) -> Outcome:
    """Fails, then answers wrongly, then rightly."""
    if task.attempt == 1:
        raise RuntimeError("not yet")
    return Outcome.candidate(task.attempt)


@verifier("third", version="1")
def third(candidate: Candidate, task: TaskContext) -> bool:
    """The third attempt is right."""
    return bool(candidate.json() == 3)


@verifier("yes", version="1")
def yes(candidate: Candidate, task: TaskContext) -> bool:
    """Always right."""
    return True
