"""The rows of a run's graph: the run, its tasks, edges, attempts and artifacts. All times are log time in milliseconds.

Statuses are those of the fold (`projections/task_graph/state.py`), exactly: a test compares both on random runs.

What was used is counted in tokens and in cost. A cost is an exact decimal number as text, without exponent and without
zeros at its end (`0`, `12`, `0.075`), in the currency of whoever reports it: no column type of all databases holds it.
"""

from __future__ import annotations

from typing import ClassVar, Final, Literal, get_args

from dagbok.events.run.values import ArtifactRef, AttemptKind, Phase, Place
from dagbok.projections.tables.rows import Row
from dagbok.projections.task_graph.state import RunStatus, TaskStatus

AttemptStatus = Literal["open", "running", "submitted", "succeeded", "failed", "lost", "cancelled", "released"]
Outcome = Literal["candidate", "decompose", "blocked", "pass", "fail", "inconclusive", "error"]
Origin = Literal["initial", "decomposition"]
EdgeState = Literal["open", "taken", "not_taken"]
ArtifactState = Literal["staged", "published"]
ROOM: Final = 60
"""Percent of a page that new rows fill: each of these rows changes a few times."""
STATUSES: Final[tuple[TaskStatus, ...]] = get_args(TaskStatus)


class RunRow(Row):
    """A run. `code` says why it is blocked or failed, `named_tasks` (JSON) which tasks caused it then; `reason` is what
    the client said who paused or cancelled it, or why it was reopened. `tasks` counts all tasks, and the columns that
    are named as statuses those that have them now; `edges` counts dependencies. `last_seq` is the number of the
    stream's last event, also of one that changed nothing, and `changed_ms` its time.

    `*_used` is what ended attempts used or were charged, `*_reserved` what open ones may use, `artifact_bytes` what
    candidates have handed over, published or not. `max_*` are the limits of the run on these, and on the time since its
    start, pauses included; null: no limit. Blocked with `budget_exhausted`, it waits for a higher one.
    """

    table: ClassVar[str] = "runs"
    key: ClassVar[tuple[str, ...]] = ("run",)
    fill_percent: ClassVar[int] = ROOM
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
    skipped: int = 0
    failed: int = 0
    cancelled: int = 0
    superseded: int = 0
    tokens_used: int = 0
    cost_used: str = "0"
    tokens_reserved: int = 0
    cost_reserved: str = "0"
    artifact_bytes: int = 0
    max_tokens: int | None = None
    max_cost: str | None = None
    max_wall_ms: int | None = None
    max_total_artifact_bytes: int | None = None

    changing: ClassVar[tuple[str, ...]] = (
        *("status", "code", "reason", "named_tasks", "closed_ms", "changed_ms", "last_seq", "graph_revision"),
        *("edges", "tasks", *STATUSES, "tokens_used", "cost_used", "tokens_reserved", "cost_reserved"),
        *("artifact_bytes", "max_tokens", "max_cost", "max_wall_ms", "max_total_artifact_bytes"),
    )

    @property
    def counts(self) -> dict[TaskStatus, int]:
        """How many tasks have each status now."""
        return {status: getattr(self, status) for status in STATUSES}


class TaskRow(Row):
    """A task. `number` is its place among the tasks of the run in the order in which they came (from 0); `parent` the
    task whose decomposition made it; `max_attempts` its own limit, if it has one. `tokens_per_attempt` and
    `cost_per_attempt`: what each attempt to work on it reserves of the budget of the run. `superseded_by`: what took
    its place; then `root` has moved there too.

    `epoch` counts all attempts, `attempts` those that work; `open_kind` is the kind of the attempt that is open or
    running now, and `*_reserved` what that may use; `*_used` is what all attempts before it used or were charged.
    `open_dependencies` counts those it still waits for, `taken_dependencies` the settled ones whose edge is taken: with
    none of either it is skipped. `staged` is what awaits a verdict, and `staged_epoch` the attempt that made it.

    `code` and `reason` say why the task is blocked or failed, or why its last attempt did not end well. Of a cancelled
    one, `code` is `task_cancelled` (and `reason` what the client said), `parent_cancelled`, `parent_superseded` or
    `run_cancelled`. `opened_ms`: the first attempt; `started_ms`: the first claim on record (a pure worker may leave it
    out); `closed_ms`: verified, skipped, failed, cancelled or superseded.
    """

    table: ClassVar[str] = "tasks"
    key: ClassVar[tuple[str, ...]] = ("run", "task")
    fill_percent: ClassVar[int] = ROOM

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
    tokens_per_attempt: int
    cost_per_attempt: str
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
    taken_dependencies: int = 0
    staged: Literal["candidate", "decomposition"] | None = None
    staged_epoch: int | None = None
    due_ms: int | None = None
    opened_ms: int | None = None
    started_ms: int | None = None
    closed_ms: int | None = None
    code: str | None = None
    reason: str | None = None
    superseded_by: str | None = None
    tokens_used: int = 0
    cost_used: str = "0"
    tokens_reserved: int = 0
    cost_reserved: str = "0"

    # What few tasks ever change is patched instead (`patches.py`): every column here is written with every change.
    changing: ClassVar[tuple[str, ...]] = (
        *("status", "epoch", "attempts", "open_kind", "failures", "lost", "verifier_errors", "decompositions"),
        *("open_dependencies", "taken_dependencies", "staged", "staged_epoch", "due_ms", "opened_ms", "started_ms"),
        *("closed_ms", "code", "reason"),
    )


class EdgeRow(Row):
    """`task` waits for `dependency`: since it was added (`initial`), or since it was decomposed. When another task
    takes the place of a dependency, the edge leads to that one from then on.

    `state`: `open` until the dependency is verified or skipped; then `taken` or `not_taken`, for ever. An edge to a
    skipped task is not taken, nor one whose `condition` its control values do not meet. `condition`, null without one,
    is for people: `.decision = approve` (what stands there in the control values, by a path of names and numbers), with
    `!=`, `<`, `<=`, `>`, `>=`, `in (…)` or `not in (…)`, several joined by `and`. The journal has it as it was said.
    """

    table: ClassVar[str] = "edges"
    key: ClassVar[tuple[str, ...]] = ("run", "task", "dependency")
    fill_percent: ClassVar[int] = ROOM
    indexes: ClassVar[tuple[tuple[str, ...], ...]] = (("run", "dependency"),)

    run: str
    task: str
    dependency: str
    origin: Origin
    condition: str | None = None
    state: EdgeState = "open"


class AttemptRow(Row):
    """An attempt. `handler` is the key of the worker or verifier that serves it, `process` the one that claimed it.

    `outcome` is what the worker returned, or the verdict. A work attempt is `submitted` from its outcome to the
    verdict on it, then `succeeded` or `failed`; a review succeeds with any verdict but `error`. `closed_ms` is when the
    attempt itself ended; a verdict on it comes later. `unserved` counts processes that did not know the handler.

    `code` says why it failed, was lost, or was cancelled: `run_cancelled`, `run_failed`, `run_succeeded`,
    `run_amended`, `budget_exhausted`, `task_cancelled` or `task_superseded`. `*_reserved` is what it might use while it
    was open, `*_used` what it said it used, or was charged when nobody said it.
    """

    table: ClassVar[str] = "attempts"
    key: ClassVar[tuple[str, ...]] = ("run", "task", "epoch")
    fill_percent: ClassVar[int] = ROOM

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
    tokens_reserved: int = 0
    cost_reserved: str = "0"
    tokens_used: int = 0
    cost_used: str = "0"


class ArtifactRow(Row):
    """An artifact of the attempt `epoch`; `item` is its place in the candidate (from 0). `staged` until a verdict
    passes, and for ever if none does. The bytes are in the log at `log_*`, or, when those are null, in the artifact
    store.
    """

    table: ClassVar[str] = "artifacts"
    key: ClassVar[tuple[str, ...]] = ("run", "task", "epoch", "item")
    fill_percent: ClassVar[int] = ROOM

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
