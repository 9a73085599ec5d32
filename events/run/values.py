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


class Spec(Value, frozen=True):
    """A task as the log keeps it: made once from a `TaskSpec`, never changed. `goal`, `contract`, `inputs` and
    `metadata` are payload: canonical JSON that deciders and folds never look into."""

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


class SpecEntry(Value, frozen=True):
    """A spec as it enters a graph: its digest, and the task that created it (none for the first tasks of a run)."""

    spec: Spec
    spec_hash: str
    created_by: str | None = None


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
    """Tunable limits of a run; they only grow. Counts, except `*_ms` (milliseconds)."""

    max_tasks: int = 100_000
    max_edges: int = 400_000
    max_children: int = 10_000
    max_open: int = 1_000
    max_attempts: int = 3
    max_lost: int = 10
    max_verifier_errors: int = 3
    backoff_base_ms: int = 200
    backoff_max_ms: int = 60_000


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
