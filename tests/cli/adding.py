"""The program that these tests run, from a copy: a root with some children. `how` says what becomes of them."""

import asyncio
from pathlib import Path
from typing import Literal

from dagbok import Artifact, Candidate, Outcome, TaskContext, TaskSpec, verifier, worker


@worker("root")
async def root(task: TaskContext) -> Outcome:
    """Decompose, then add up."""
    if task.phase == "integrate":
        total = sum(int(made.text()) for made in task.dependencies.values())
        page = Artifact(content="# total", media_type="text/markdown")
        return Outcome.candidate({"total": total}, artifacts={"page": page})
    count, how, folder = task.inputs
    key = "nobody" if how == "unserved" else "part"
    return Outcome.decompose(
        [
            TaskSpec(id=f"part-{n:02}", goal=f"part {n}", worker=key, verifier="check", inputs=[n, how, folder])
            for n in range(count)
        ]
    )


@worker("part", concurrency=2)
async def part(task: TaskContext) -> Outcome:
    """A number, unless `how` says otherwise."""
    number, how, folder = task.inputs
    with open(Path(folder) / "calls.txt", "a") as calls:  # noqa: ASYNC230 - a line, at once
        calls.write(f"{task.task_id}\n")
    print("a worker prints this")  # noqa: T201
    if how == "fail" and number == 1:
        raise ValueError("no \033[31mgood\nat all")
    if how == "block" and number == 1 and task.problem is None:
        return Outcome.blocked("the key is missing")
    while how == "gate" and number >= 2 and not (Path(folder) / "gate").exists():  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    return Outcome.candidate(number)


@verifier("check", version="1")
def check(candidate: Candidate, task: TaskContext) -> bool:
    """Everything is right."""
    return True


How = Literal["pass", "fail", "block", "gate", "unserved"]


def main(count: int = 3, how: How = "pass", at: Path = Path()) -> TaskSpec:
    """Add numbers up.

    Parameters
    ----------
    count
        How many parts.
    """
    inputs = [count, how, str(at.resolve())]
    return TaskSpec(id="root", goal="add up", worker="root", verifier="check", inputs=inputs)
