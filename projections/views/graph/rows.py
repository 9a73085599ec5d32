"""The rows of a run's graph: the run, its tasks, edges, attempts and artifacts. All times are log time in milliseconds.

Statuses are those of the fold (`projections/task_graph/state.py`), exactly: a test compares both on random runs.
"""

from __future__ import annotations

from typing import ClassVar, Final, Literal

from dagbok.events.run.values import ArtifactRef, AttemptKind, Phase, Place
from dagbok.projections.tables.rows import Row
from dagbok.projections.task_graph.state import RunStatus, TaskStatus

AttemptStatus = Literal["open", "running", "submitted", "succeeded", "failed", "lost", "cancelled", "released"]
Outcome = Literal["candidate", "decompose", "blocked", "pass", "fail", "inconclusive", "error"]
Origin = Literal["initial", "decomposition"]
ArtifactState = Literal["staged", "published"]
STATUSES: Final[tuple[TaskStatus, ...]] = (
    *("waiting", "ready", "running", "verifying", "backoff", "blocked", "verified", "failed", "cancelled"),
)


class RunRow(Row):
    """A run. `code` says why it is blocked or failed, `named_tasks` (JSON) which tasks cause it; `reason` is what the
    client said who paused or cancelled it, or why it was reopened. `tasks` counts all tasks, and the columns that are
    named as statuses those that have them now; `edges` counts dependencies. `last_seq` is the number of the stream's
    last event, also of one that changed nothing, and `changed_ms` its time.
    """

    table: ClassVar[str] = "runs"
    key: ClassVar[tuple[str, ...]] = ("run",)
    indexes: ClassVar[tuple[tuple[str, ...], ...]] = (("tenant", "project", "started_ms"),)

    run: str
    stream: str
    user: str
    started_ms: int
    status: RunStatus = "running"
    code: str | None = None
    reason: str | None = None
    named_tasks: str | None = None
    closed_ms: int | None = None
    changed_ms: int = 0
    last_seq: int = 0
    graph_revision: int = 0
    edges: int = 0
    tasks: int = 0
    waiting: int = 0
    ready: int = 0
    running: int = 0
    verifying: int = 0
    backoff: int = 0
    blocked: int = 0
    verified: int = 0
    failed: int = 0
    cancelled: int = 0

    changing: ClassVar[tuple[str, ...]] = (
        *("status", "code", "reason", "named_tasks", "closed_ms", "changed_ms", "last_seq", "graph_revision"),
        *("edges", "tasks", "waiting", "ready", "running", "verifying", "backoff", "blocked", "verified", "failed"),
        "cancelled",
    )

    @property
    def counts(self) -> dict[TaskStatus, int]:
        """How many tasks have each status now."""
        return {status: getattr(self, status) for status in STATUSES}


class TaskRow(Row):
    """A task. `number` is its place among the tasks of the run in the order in which they came (from 0); `parent` the
    task whose decomposition made it; `max_attempts` its own limit, if it has one.

    `epoch` counts all attempts, `attempts` those that work; `open_kind` is the kind of the attempt that is open or
    running now. `open_dependencies` counts those it still waits for. `staged` is what awaits a verdict, and
    `staged_epoch` the attempt that made it. `code` and `reason` say why the task is blocked or failed, or why its last
    attempt did not end well. `opened_ms`: the first attempt; `started_ms`: the first claim on record (a pure worker may
    leave it out); `closed_ms`: verified, failed or cancelled.
    """

    table: ClassVar[str] = "tasks"
    key: ClassVar[tuple[str, ...]] = ("run", "task")

    run: str
    task: str
    number: int
    parent: str | None
    root: bool
    depth: int
    goal: str
    worker: str
    verifier: str
    pool: str
    priority: int
    max_attempts: int | None
    added_ms: int
    status: TaskStatus = "waiting"
    epoch: int = 0
    attempts: int = 0
    open_kind: AttemptKind | None = None
    failures: int = 0
    lost: int = 0
    verifier_errors: int = 0
    decompositions: int = 0
    open_dependencies: int = 0
    staged: Literal["candidate", "decomposition"] | None = None
    staged_epoch: int | None = None
    due_ms: int | None = None
    opened_ms: int | None = None
    started_ms: int | None = None
    closed_ms: int | None = None
    code: str | None = None
    reason: str | None = None

    changing: ClassVar[tuple[str, ...]] = (
        *("status", "epoch", "attempts", "open_kind", "failures", "lost", "verifier_errors", "decompositions"),
        *("open_dependencies", "staged", "staged_epoch", "due_ms", "opened_ms", "started_ms", "closed_ms"),
        *("code", "reason"),
    )


class EdgeRow(Row):
    """`task` waits for `dependency`: since it was added (`initial`), or since it was decomposed."""

    table: ClassVar[str] = "edges"
    key: ClassVar[tuple[str, ...]] = ("run", "task", "dependency")
    indexes: ClassVar[tuple[tuple[str, ...], ...]] = (("run", "dependency"),)

    run: str
    task: str
    dependency: str
    origin: Origin


class AttemptRow(Row):
    """An attempt. `handler` is the key of the worker or verifier that serves it, `process` the one that claimed it.

    `outcome` is what the worker returned, or the verdict. A work attempt is `submitted` from its outcome to the
    verdict on it, then `succeeded` or `failed`; a review succeeds with any verdict but `error`. `closed_ms` is when the
    attempt itself ended; a verdict on it comes later. `unserved` counts processes that did not know the handler.
    """

    table: ClassVar[str] = "attempts"
    key: ClassVar[tuple[str, ...]] = ("run", "task", "epoch")

    run: str
    task: str
    epoch: int
    kind: AttemptKind
    phase: Phase
    pool: str
    handler: str
    opened_ms: int
    status: AttemptStatus = "open"
    process: str | None = None
    outcome: Outcome | None = None
    started_ms: int | None = None
    closed_ms: int | None = None
    unserved: int = 0
    code: str | None = None
    message: str | None = None


class ArtifactRow(Row):
    """An artifact of the attempt `epoch`; `item` is its place in the candidate (from 0). `staged` until a verdict
    passes, and for ever if none does. The bytes are in the log at `log_*`, or, when those are null, in the artifact
    store.
    """

    table: ClassVar[str] = "artifacts"
    key: ClassVar[tuple[str, ...]] = ("run", "task", "epoch", "item")

    run: str
    task: str
    epoch: int
    item: int
    name: str
    sha256: str
    size_bytes: int
    media_type: str
    staged_ms: int
    log_partition: int | None
    log_offset: int | None
    log_event: int | None
    state: ArtifactState = "staged"
    published_ms: int | None = None

    @property
    def ref(self) -> ArtifactRef:
        """The reference that finds its bytes."""
        partition, offset, event = self.log_partition, self.log_offset, self.log_event
        place = (
            None if partition is None or offset is None or event is None else Place(partition, offset, event, self.item)
        )
        return ArtifactRef(self.name, self.sha256, self.size_bytes, self.media_type, place)
