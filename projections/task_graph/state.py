"""The state of one run, indexed so that a command costs what it touches, however large the run is.

Changed by `evolve.py` alone; read by `agents/scheduler/`. It holds ids, statuses, digests and control values, and specs
as opaque values, but no payload bytes: those stay in the log, where `Place` finds them, or in the artifact store.
Everything here can be written to a snapshot and read back equal.

Tasks are named by id, never referred to, so there are no cycles, and the garbage collector need not walk 100,000 of
them (`gc=False`; edges are tuples, which it lets go of, not lists).
"""

from __future__ import annotations

from typing import Literal

import msgspec

from dagbok.events.ids import ZERO_HASH
from dagbok.events.run.values import (
    NULL,
    ArtifactRef,
    AttemptKind,
    Claim,
    Condition,
    Decompose,
    Limits,
    Phase,
    Pinned,
    SecurityContext,
    Spec,
    Usage,
)

RunStatus = Literal["running", "paused", "blocked", "succeeded", "failed", "cancelled"]
TaskStatus = Literal[
    "waiting",
    "ready",
    "running",
    "verifying",
    "backoff",
    "blocked",
    "verified",
    "skipped",
    "failed",
    "cancelled",
    "superseded",
]

CLOSED_RUN: frozenset[RunStatus] = frozenset(("succeeded", "cancelled", "failed"))
FINAL_TASK: frozenset[TaskStatus] = frozenset(("verified", "skipped", "cancelled", "superseded"))
GONE_TASK: frozenset[TaskStatus] = frozenset(("cancelled", "superseded"))
"""What waits for one of these waits for ever, unless another task takes its place."""
ACTIVE_TASK: tuple[TaskStatus, ...] = ("ready", "running", "verifying", "backoff")
"""While a task has one of these, the run can go on by itself."""


class At(msgspec.Struct, frozen=True, gc=False):
    """Where an event stands and when it was decided: what a fold may know beside the event."""

    partition: int
    offset: int
    index: int
    now_ms: int
    command_id: str


class Attempt(msgspec.Struct, gc=False):
    """The attempt of a task that is open or running now. Times are log time in milliseconds.

    `started_by`, `renewed_by` and, for each process, `rejected_by` name the last such command and the offset of its
    commit: the same command again is a repeat."""

    epoch: int
    kind: AttemptKind
    phase: Phase
    input_hash: str
    opened_ms: int
    opened_at: tuple[int, int]
    claim: Claim | None = None
    reply_to: str | None = None
    lease_until_ms: int = 0
    timeout_at_ms: int | None = None
    reserved: Usage | None = None
    unserved: int = 0
    started_by: tuple[str, int] = ("", -1)
    renewed_by: tuple[str, int] = ("", -1)
    rejected_by: dict[str, tuple[str, int]] = {}


class Staged(msgspec.Struct, frozen=True, gc=False):
    """What awaits a verdict: a candidate's artifacts and control values, or a proposal. `subject` binds the report."""

    kind: Literal["candidate", "decomposition"]
    phase: Phase
    subject: tuple[str, ...]
    artifacts: tuple[ArtifactRef, ...] = ()
    outputs: msgspec.Raw = NULL
    proposal: Decompose | None = None
    place: tuple[int, int] = (0, 0)


class ProblemRef(msgspec.Struct, frozen=True, gc=False):
    """Where the log tells what went wrong before: offset of the commit, index of the event, and a hash for the
    input."""

    code: str
    offset: int
    event: int
    hash: str


class Session(msgspec.Struct, frozen=True, gc=False):
    """What the worker of a task has put down last. `parts` together are its content, whose form only workers know;
    `digest` names it with all that came before. `by`: the command that put it down, and the offset of its commit."""

    turn: int
    digest: str
    parts: tuple[ArtifactRef, ...]
    by: tuple[str, int]


class TaskNode(msgspec.Struct, gc=False):
    """A task: its spec, its place in the graph, its counters, its present attempt, and what it published.

    `deps` are its edges as they are now: to what the spec names or what took its place, then to its children. An open
    one is not settled yet; `wanted` says that one of the settled ones is taken, `missed` that one of them is not.
    `conditions`: on edges, as they are
    now. `composition`: what the children of its last decomposition are to make up together. `supersedes`: the task
    whose place it took.

    `worked_by` and `judged_by` name the command that closed the last attempt of each kind, and the offset of its
    commit: the same command again is a repeat, whatever became of the task since. An older one is refused as stale."""

    spec: Spec
    spec_hash: str
    order: int
    depth: int
    created_by: str | None
    deps: tuple[str, ...]
    status: TaskStatus = "waiting"
    dependents: tuple[str, ...] = ()
    open_deps: int = 0
    wanted: bool = False
    missed: bool = False
    conditions: tuple[Condition, ...] = ()
    superseded_by: str | None = None
    supersedes: str | None = None
    epoch: int = 0
    failures: int = 0
    lost: int = 0
    verifier_errors: int = 0
    conflicts: int = 0
    decompositions: int = 0
    composition: msgspec.Raw = NULL
    due_ms: int = 0
    attempt: Attempt | None = None
    staged: Staged | None = None
    problem: ProblemRef | None = None
    note: ProblemRef | None = None
    root: bool = False
    published: tuple[ArtifactRef, ...] = ()
    outputs: msgspec.Raw = NULL
    session: Session | None = None
    worked_by: tuple[str, int] = ("", -1)
    judged_by: tuple[str, int] = ("", -1)

    @property
    def id(self) -> str:
        """The id of the task, unique in its run."""
        return self.spec.id

    @property
    def phase(self) -> Phase:
        """A task that was decomposed integrates what its children made."""
        return "integrate" if self.decompositions else "solve"


class RunState(msgspec.Struct):
    """A run. `ready` and `backoffs` are heaps, `reviews` is a queue; `active` has the tasks with an attempt, in the
    order in which they were opened; `counts` has the tasks per status; `skipping` those that no edge leads to any more;
    `resting` those whose verifier is asked again later.

    `blocked`, `failed` and `cancelled` (by a command) have the code of each such task. `blocked_by`, `failed_by`: the
    code of the block and of the end of the run itself; `exhausted`: it is blocked by a limit of the run, and not by
    tasks. `graph_offset`: of the commit that last changed the graph, which is when tasks or edges come or tasks are
    cancelled or superseded. `spent` is what ended attempts used, `reserved` what open ones may use."""

    run: str
    tenant: str
    project: str
    status: RunStatus | None = None
    pinned: Pinned | None = None
    limits: Limits = Limits()
    context: SecurityContext = SecurityContext(user="")
    context_hash: str = ""
    start_digest: str = ""
    graph_digest: str = ""
    roots: tuple[str, ...] = ()
    graph_revision: int = 0
    graph_offset: int = -1
    edges: int = 0
    open_roots: int = 0
    tasks: dict[str, TaskNode] = {}
    counts: dict[TaskStatus, int] = {}
    ready: list[tuple[int, int, str]] = []
    backoffs: list[tuple[int, int, str]] = []
    reviews: list[str] = []
    skipping: list[str] = []
    resting: dict[str, None] = {}
    active: dict[str, None] = {}
    blocked: dict[str, str] = {}
    failed: dict[str, str] = {}
    cancelled: dict[str, str] = {}
    blocked_by: str = ""
    failed_by: str = ""
    exhausted: bool = False
    spent: Usage = Usage()
    reserved: Usage = Usage()
    artifact_bytes: int = 0
    stream_seq: int = 0
    stream_head: str = ZERO_HASH
    started_ms: int = 0
    started_offset: int = -1
    closed_ms: int = 0

    @property
    def stream(self) -> str:
        """The stream that this run's commits belong to."""
        return "run:" + self.run

    @property
    def exists(self) -> bool:
        """False until `RunStarted`."""
        return self.status is not None

    def bound(self) -> Pinned:
        """The pinned values of a run that exists."""
        if self.pinned is None:
            raise LookupError(f"run {self.run} has not started")
        return self.pinned
