"""Values that stand inside the commands and events of a run. Frozen; their defaults are part of the format and never
change."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

Phase = Literal["solve", "integrate"]
AttemptKind = Literal["work", "verify"]
VerdictWord = Literal["pass", "fail", "inconclusive", "error"]
Assurance = Literal["formal", "executable_checks", "human_review"]
Judged = Literal["candidate", "decomposition"]
FailurePolicy = Literal["continue_independent", "fail_fast"]
Comparison = Literal["in", "not_in", "lt", "le", "gt", "ge"]
Join = Literal["any", "all"]

NULL: Final = msgspec.Raw(b"null")
MAX_INLINE_BYTES: Final = 32 * 1024
"""Larger artifacts go to the artifact store, and larger control values are refused."""
MAX_MESSAGE_CHARS: Final = 4_000
MAX_TRACEBACK_CHARS: Final = 16_000
"""Of a failure: what is longer is cut by its worker, and again where it is decided."""
STRUCTURE: Final = "structure"
"""Key of the built-in judge of decompositions that no registered verifier judges."""


class Value(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Base of what is immutable and holds no reference back."""


class Condition(Value, frozen=True):
    """When the edge to the dependency `task` is taken: the control value of that task at `output` (a JSON Pointer, RFC
    6901) is among `values`, or is not, or is a number that compares with the one value. A place that its outputs do not
    have is equal to nothing."""

    task: str
    output: str
    values: tuple[msgspec.Raw, ...]
    op: Comparison = "in"


class TaskLimits(Value, frozen=True):
    """What one attempt at a task may use. `tokens` and `cost` are reserved when a work attempt opens; what it reports
    replaces them. `context_bytes`, `context_artifacts`: what its worker may be handed (goal, contract, inputs and
    artifacts of dependencies); a task with more is blocked rather than cut."""

    tokens: int = 0
    cost: str = "0"
    context_bytes: int | None = None
    context_artifacts: int | None = None


class SessionSeed(Value, frozen=True):
    """The session that a task begins with: that of a task, in whichever run, as it was put down after `turn` under the
    name `digest`. Its content lies in the artifact store, in one part."""

    run: str
    task: str
    turn: int
    digest: str
    sha256: str
    size_bytes: int


class Spec(Value, frozen=True):
    """A task as the log keeps it: made once from a `TaskSpec`, never changed. `goal`, `contract`, `inputs` and
    `metadata` are payload: canonical JSON that deciders and folds never look into.

    `when`: conditions on edges to tasks in `depends_on`. `join`: how many of the edges have to be taken for the task to
    run, any one or all. `child_verifiers`: the only verifiers that tasks created below
    this one may name; none: those of its creator."""

    id: str
    goal: str
    worker: str
    verifier: str
    depends_on: tuple[str, ...] = ()
    proposal_verifier: str | None = None
    contract: msgspec.Raw = NULL
    inputs: msgspec.Raw = NULL
    metadata: msgspec.Raw = NULL
    pool: str = "default"
    priority: int = 0
    timeout_ms: int | None = None
    lease_ms: int = 60_000
    max_attempts: int | None = None
    when: tuple[Condition, ...] = ()
    child_verifiers: tuple[str, ...] | None = None
    limits: TaskLimits | None = None
    session: SessionSeed | None = None
    join: Join = "any"


class SpecEntry(Value, frozen=True):
    """A spec as it enters a graph: its digest, the task that created it (none for the first tasks of a run), the task
    that it replaces, and the dependencies that are settled already in such a way that their edge is not taken."""

    spec: Spec
    spec_hash: str
    created_by: str | None = None
    supersedes: str | None = None
    not_taken: tuple[str, ...] = ()


class VerifierPin(Value, frozen=True):
    """The verifier that a run is bound to under one key. A report by any other version or digest is refused."""

    version: str
    digest: str
    assurance: Assurance = "executable_checks"
    judges: tuple[Judged, ...] = ("candidate",)


class Pinned(Value, frozen=True):
    """What a run is bound to for life; changed only by a recorded amendment. `schema_version`: of the words that
    specs and results are written in."""

    verifiers: dict[str, VerifierPin]
    failure_policy: FailurePolicy = "continue_independent"
    max_depth: int = 8
    max_decompositions: int = 1
    schema_version: int = 1


class Limits(Value, frozen=True):
    """Tunable limits of a run; they only grow, once they stand. Counts, except `*_ms` (milliseconds), `*_bytes` and
    `max_cost` (a decimal number in the currency of whoever reports it). None: no limit.

    `max_pending_verifications`: while so many tasks await a verdict, no more work opens. `max_artifact_bytes`: of one
    artifact; `max_total_artifact_bytes`: of all that candidates of the run handed over. `max_wall_ms`: since its start,
    pauses included. `max_context_bytes`: what any worker may be handed."""

    max_tasks: int = 100_000
    max_edges: int = 400_000
    max_children: int = 10_000
    max_open: int = 1_000
    max_attempts: int = 3
    max_lost: int = 10
    max_verifier_errors: int = 3
    backoff_base_ms: int = 200
    backoff_max_ms: int = 60_000
    max_pending_verifications: int = 1_000
    max_artifact_bytes: int = 1024**3
    max_total_artifact_bytes: int | None = None
    max_wall_ms: int | None = None
    max_tokens: int | None = None
    max_cost: str | None = None
    max_context_bytes: int | None = None


class SecurityContext(Value, frozen=True):
    """For whom a run acts. `permissions`: the explicit word "unrestricted", or a list (an empty one allows nothing)."""

    user: str
    session: str | None = None
    permissions: Literal["unrestricted"] | tuple[str, ...] = "unrestricted"


class Claim(Value, frozen=True, array_like=True):
    """Who holds an attempt: a process, the how-manieth start in it, and a random word, so that no two are equal."""

    process: str
    start: int
    nonce: str


class ArtifactItem(Value, frozen=True):
    """Bytes that an outcome hands over: up to 32 KiB inline, larger ones stored under their hash before."""

    name: str
    sha256: str
    size_bytes: int
    media_type: str
    inline: bytes | None = None


class Place(Value, frozen=True, array_like=True):
    """Where inline bytes stand in the log: partition, offset of the commit, index of the event, index of the item."""

    partition: int
    offset: int
    event: int
    item: int


class ArtifactRef(Value, frozen=True):
    """An artifact without its bytes. `place` is none when they are in the artifact store."""

    name: str
    sha256: str
    size_bytes: int
    media_type: str
    place: Place | None = None


class Usage(Value, frozen=True):
    """What an attempt used, as its worker reports it."""

    tokens: int = 0
    cost: str = "0"


class Candidate(Value, frozen=True, tag="candidate", tag_field="kind"):
    """An outcome to be verified. `outputs`: control values (canonical JSON, up to 32 KiB) that deciders may read."""

    artifacts: tuple[ArtifactItem, ...]
    outputs: msgspec.Raw = NULL


class Decompose(Value, frozen=True, tag="decompose", tag_field="kind"):
    """An outcome that asks for new tasks, which the task waits for, and then runs again to integrate."""

    tasks: tuple[Spec, ...] = ()
    reuse: tuple[str, ...] = ()
    rationale: str = ""
    composition_contract: msgspec.Raw = NULL
    expected_graph_revision: int | None = None


class Blocked(Value, frozen=True, tag="blocked", tag_field="kind"):
    """An outcome that says what a person has to do first."""

    reason: str


OutcomeData = Candidate | Decompose | Blocked


class Failure(Value, frozen=True):
    """Why an attempt failed: `retryable` or `terminal`, the code, and the cause as text (trimmed)."""

    failure: Literal["retryable", "terminal"]
    code: str
    type: str
    message: str
    traceback: str = ""


class Report(Value, frozen=True):
    """What a verifier says, with everything that binds it to one review: see `SubmitVerdict`."""

    kind: Judged
    verdict: VerdictWord
    verifier: str
    version: str
    digest: str
    assurance: Assurance
    input_hash: str
    subject: tuple[str, ...]
    diagnostics: msgspec.Raw = NULL
    evidence: msgspec.Raw = NULL
