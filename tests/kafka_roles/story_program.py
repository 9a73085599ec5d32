"""The program of the story that is told on both logs: each of its tasks needs something else of its user."""

from __future__ import annotations

from dagbok import Artifact, Candidate, Outcome, TaskContext, TaskSpec, verifier, worker

LONG = "all of it\n" * 5_000
"""Too large for the log."""


@worker("reports", pure=True)
async def reports(task: TaskContext) -> Outcome:
    """Publishes something small and something large."""
    return Outcome.candidate({"pages": 2}, artifacts={"short": "a word", "long": Artifact(content=LONG)})


@worker("fails")
async def fails(task: TaskContext) -> Outcome:
    """Until somebody has said something about it."""
    if task.problem is None or not task.problem.note:
        raise ValueError("the disk is full")
    return Outcome.candidate(task.problem.note)


@worker("asks")
async def asks(task: TaskContext) -> Outcome:
    """Goes on with what it is told."""
    if task.problem is None:
        return Outcome.blocked("which colour?")
    return Outcome.candidate(task.problem.note)


@worker("talks")
async def talks(task: TaskContext) -> Outcome:
    """A word in each turn."""
    words = task.session.load() or []
    for word in ("one", "two", "three"):
        words.append(word)
        await task.session.save(words)
    return Outcome.candidate(words)


@verifier("any", version="1")
def anything(candidate: Candidate, task: TaskContext) -> bool:
    """Everything is right."""
    return True


@verifier("spare", version="1")
def spare(candidate: Candidate, task: TaskContext) -> bool:
    """Of no task."""
    return True


def main() -> list[TaskSpec]:
    """Tasks that stop for a reason, and one that waits for all of them."""
    keys = {"report": "reports", "full": "fails", "hopeless": "fails", "colour": "asks", "talk": "talks"}
    tasks = [TaskSpec(id=id, goal=f"{id} it", worker=key, verifier="any", max_attempts=1) for id, key in keys.items()]
    return [*tasks, TaskSpec(id="end", goal="end it", worker="talks", verifier="any", depends_on=tuple(keys))]
