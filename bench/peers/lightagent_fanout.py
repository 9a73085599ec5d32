"""The fan-out on LightDAG (LightAgent 0.11): root → N no-op tasks → integrate, each verified, SQLite and blobs on disk.

    python lightagent_fanout.py FOLDER TASKS

Runs in the environment that `bench/support/peers.py` makes from `lightagent.txt`, so it imports nothing of dagbok.
Functions are async, which costs the peer least. Prints its figures as JSON; only `arun` is timed.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from importlib.metadata import version
from pathlib import Path

from LightAgent.dag import (  # type: ignore[import-not-found]
    CallableVerifier,
    DAGConfig,
    DecompositionProposal,
    LightDAG,
    LocalArtifactStore,
    SqliteTaskGraphStore,
    TaskContext,
    TaskOutcome,
    TaskSpec,
    VerificationRequest,
)
from LightAgent.security import SecurityContext  # type: ignore[import-not-found]


async def measure(folder: Path, tasks: int) -> dict[str, str | float]:
    """Run it in an empty folder."""
    dag = LightDAG(
        store=SqliteTaskGraphStore(folder / "graph.db"),
        artifact_store=LocalArtifactStore(folder / "artifacts"),
        verifiers={"always": CallableVerifier("always", always)},
        config=DAGConfig(max_tasks=tasks + 10, max_edges=3 * tasks + 10, max_concurrency=4, verification_concurrency=4),
    )

    async def fan_out(context: TaskContext) -> TaskOutcome:
        if context.attempt.phase == "integrate":
            return TaskOutcome.candidate("ok")
        children = tuple([task_spec(f"task {number}", "no-op") for number in range(tasks)])
        parent, revision = context.task.spec.task_id, context.run.graph_revision
        return TaskOutcome.decompose(DecompositionProposal(parent, children, expected_graph_revision=revision))

    dag.register_worker("fan-out", fan_out)
    dag.register_worker("no-op", no_op)
    owner = SecurityContext(tenant_id="local", project_id="default")
    run = dag.create_run([task_spec("root", "fan-out")], context=owner)
    start_s, start_cpu_s = time.perf_counter(), time.process_time()
    result = await dag.arun(run.run_id)
    wall_s, cpu_s = time.perf_counter() - start_s, time.process_time() - start_cpu_s
    verified = [task for task in dag.list_tasks(run.run_id) if task.state.status.value == "verified"]
    if not result.success or len(verified) != tasks + 1:
        raise RuntimeError(f"the run is {result.status} with {len(verified)} verified tasks")
    return {
        "version": version("lightagent"),
        "tasks_per_s": tasks / wall_s,
        "wall_s": wall_s,
        "cpu_ms_per_task": cpu_s / tasks * 1000,
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def task_spec(goal: str, worker: str) -> TaskSpec:
    """A task that is judged by `always`."""
    return TaskSpec(goal=goal, acceptance_contract="ok", worker_key=worker, verifier_key="always")


async def no_op(context: TaskContext) -> TaskOutcome:
    """Return at once."""
    return TaskOutcome.candidate("ok")


async def always(request: VerificationRequest) -> bool:
    """Pass at once."""
    return True


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(Path(sys.argv[1]), int(sys.argv[2])))))
