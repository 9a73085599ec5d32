"""The fan-out as a user would write it: nothing here knows that it is measured."""

from __future__ import annotations

from dagbok import Candidate, Limits, Outcome, TaskContext, TaskSpec, Verifier, Worker, verifier, worker

SHARD = 10_000
"""As many tasks as one decomposition may add."""


def definitions() -> tuple[Worker | Verifier, ...]:
    """The workers and the verifier of the workload."""
    return fan_out, no_op, always


def root_task(tasks: int) -> TaskSpec:
    """The task that becomes `tasks` no-op tasks, through shards if need be. Its result counts what it integrated."""
    return _group(tasks, "root")


def verified_in_all(tasks: int) -> int:
    """How many tasks such a run verifies: the no-op ones, the shards and the root."""
    return tasks + 1 + (len(_shards(tasks)) if tasks > SHARD else 0)


def limits(tasks: int) -> Limits:
    """Room for such a run."""
    return Limits(max_tasks=verified_in_all(tasks), max_edges=max(2 * tasks, 10))


@worker("fan-out", pure=True)
async def fan_out(task: TaskContext) -> Outcome:
    """Decompose, then count: in phase `integrate` of a group of shards, what they counted."""
    tasks = _tasks_of(task)
    if task.phase == "solve":
        if tasks > SHARD:
            return Outcome.decompose([_group(size, f"shard {number}") for number, size in enumerate(_shards(tasks))])
        return Outcome.decompose(
            [TaskSpec(goal=f"task {number}", worker="no-op", verifier="always") for number in range(tasks)]
        )
    if tasks > SHARD:
        return Outcome.candidate(sum([_number(shard.json()) for shard in task.dependencies.values()]))
    return Outcome.candidate(len(task.dependencies))


@worker("no-op", pure=True)
async def no_op(task: TaskContext) -> Outcome:
    """Return at once."""
    return Outcome.candidate("ok")


@verifier("always", version="1")
async def always(candidate: Candidate, task: TaskContext) -> bool:
    """Pass at once."""
    return True


def _group(tasks: int, goal: str) -> TaskSpec:
    return TaskSpec(goal=goal, worker="fan-out", verifier="always", inputs={"tasks": tasks})


def _shards(tasks: int) -> list[int]:
    """The sizes of the shards: as few as possible, as equal as possible."""
    count = -(-tasks // SHARD)
    return [tasks // count + (number < tasks % count) for number in range(count)]


def _tasks_of(task: TaskContext) -> int:
    return _number(task.inputs["tasks"]) if isinstance(task.inputs, dict) else 0


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
