"""What a run came to, as the caller of `Dagbok.run` sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal, NamedTuple

from dagbok.agents.scheduler.decide.judges import judge_of
from dagbok.agents.workers.reader import ArtifactReader
from dagbok.agents.workers.views import Artifacts, ArtifactView
from dagbok.events.budgets import Limits, limits_in_force
from dagbok.events.envelope import Input
from dagbok.events.run.values import ArtifactRef, Usage
from dagbok.projections.artifacts.scope import Scope
from dagbok.projections.task_graph.state import RunState, RunStatus

READ_AHEAD_BYTES: Final = 64 * 1024


@dataclass(frozen=True)
class RunResult:
    """`roots`: the published artifacts of each root that is verified. `failed`, `blocked`, `cancelled`: tasks with
    their codes. `code`: why the run failed or is blocked; none when it did not and is not. `last_event`: the number of
    the last event, for `Dagbok.events(after=)`.

    `limits`: those in force. What counts against them: `usage` is what ended attempts used or were charged, `reserved`
    what open ones may use, `artifact_bytes` what candidates handed over; the wall time began at `started_ms`.
    `started_ms`, `closed_ms` (none while the run is not over): since 1970, by the clock of the log."""

    run: str
    status: RunStatus
    tasks: int
    counts: Mapping[str, int]
    roots: Mapping[str, Artifacts]
    failed: Mapping[str, str]
    blocked: Mapping[str, str]
    cancelled: Mapping[str, str]
    code: str | None
    usage: Usage
    reserved: Usage
    artifact_bytes: int
    limits: Limits
    started_ms: int
    closed_ms: int | None
    last_event: int

    @property
    def succeeded(self) -> bool:
        """Every root is verified."""
        return self.status == "succeeded"

    @property
    def artifacts(self) -> Artifacts:
        """The artifacts of the only root. Raises `ValueError` when there are several, `KeyError` when it is not
        verified."""
        if len(self.roots) > 1:
            raise ValueError(f"run {self.run} has {len(self.roots)} roots: use `roots`")
        if not self.roots:
            raise KeyError(f"run {self.run} is {self.status}: nothing is published")
        return next(iter(self.roots.values()))

    def json(self, name: str = "result") -> Any:
        """The JSON value of an artifact of the only root."""
        return self.artifacts.json(name)


def _input(task: str, ref: ArtifactRef, scope: Scope, reader: ArtifactReader) -> Input:
    """Small artifacts are read now, so that a result can be used after its `Dagbok` is closed."""
    inline = reader.read(scope, Input(task, ref)) if ref.size_bytes <= READ_AHEAD_BYTES else None
    return Input(task, ref, inline)


def result_of(run: RunState, reader: ArtifactReader) -> Callable[[], RunResult]:
    """The result of a run as it stands now: what comes back reads it (blocking; any thread), whatever becomes of the
    run meanwhile."""
    told = _told(run)
    scope = Scope(run.tenant, run.project)
    published = {root: node.published for root in run.roots if (node := run.tasks[root]).status == "verified"}

    def read() -> RunResult:
        roots = {root: Artifacts({ref.name: view(root, ref) for ref in refs}) for root, refs in published.items()}
        return replace(told, roots=roots)

    def view(root: str, ref: ArtifactRef) -> ArtifactView:
        return ArtifactView(_input(root, ref, scope, reader), partial(reader.read, scope))

    return read


def _told(run: RunState) -> RunResult:
    """All but the artifacts."""
    counts: dict[str, int] = {status: count for status, count in run.counts.items() if count}
    return RunResult(
        run=run.run,
        status=run.status or "running",
        tasks=len(run.tasks),
        counts=counts,
        roots={},
        failed=dict(run.failed),
        blocked=dict(run.blocked),
        cancelled=dict(run.cancelled),
        code=run.blocked_by or run.failed_by or None,
        usage=run.spent,
        reserved=run.reserved,
        artifact_bytes=run.artifact_bytes,
        limits=limits_in_force(run.limits),
        started_ms=run.started_ms,
        closed_ms=run.closed_ms or None,
        last_event=run.stream_seq,
    )


class Unserved(NamedTuple):
    """What an open attempt waits for and no process has: a worker or verifier by its key, or whoever serves a pool. As
    text, `worker 'x'`."""

    kind: Literal["worker", "verifier", "pool"]
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}"


def unserved_keys(run: RunState) -> list[Unserved]:
    """What open attempts of the run wait for and no process that was offered them serves."""
    found: set[Unserved] = set()
    for task in run.active:
        node = run.tasks[task]
        attempt = node.attempt
        if attempt is None or attempt.claim is not None or not attempt.unserved:
            continue
        if attempt.kind == "work":
            found.add(Unserved("worker", node.spec.worker))
        else:
            found.add(Unserved("verifier", judge_of(run, node)))
    return sorted(found)


def waiting_pools(run: RunState) -> set[str]:
    """The pools in which open attempts of the run wait that nobody has claimed."""
    waiting = [run.tasks[task] for task in run.active]
    return {node.spec.pool for node in waiting if node.attempt is not None and node.attempt.claim is None}
