"""What people write: task specifications, outcomes of workers, verdicts of verifiers. Checked here, once, at the edge.

The log has its own form of each (`events/run/values.py`); `agents/workers/encode.py` translates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, cast

from pydantic import Field, StringConstraints, ValidationInfo, field_validator

from dagbok.events.canonical import canonical
from dagbok.events.codes import Code
from dagbok.events.numbers import MAX_COUNT, Cost, Integer, Seconds
from dagbok.events.run.values import Join, VerdictWord
from dagbok.events.when import When
from dagbok.events.written import TITLE, JsonValue, Key, TaskId, Written

Sha256 = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]


class Usage(Written, title=TITLE + "Usage"):
    """What an attempt used, as its worker counts it: `tokens`, and `cost` as a decimal number in the currency of
    whoever reads it (text, a `Decimal` or an integer, never a float; not negative, up to 18 digits before the point and
    18 behind it)."""

    tokens: Integer = Field(default=0, ge=0, le=MAX_COUNT)
    cost: Cost = "0"


class TaskLimits(Written, title=TITLE + "TaskLimits"):
    """What one attempt at a task may use.

    - `tokens`, `cost` (a decimal number, as in `Usage`): reserved of the budget of the run while an attempt runs; what
      it reports then replaces them.
    - `context_bytes`, `context_artifacts`: what its worker may be handed at most: goal, contract, inputs, composition
      contract and the artifacts of dependencies; metadata and what is told of earlier attempts do not count. More
      blocks the task (`context_overflow`); nothing is ever cut.
    """

    tokens: Integer = Field(default=0, ge=0, le=MAX_COUNT)
    cost: Cost = "0"
    context_bytes: Integer | None = Field(default=None, gt=0, le=MAX_COUNT)
    context_artifacts: Integer | None = Field(default=None, gt=0, le=MAX_COUNT)


class SessionFork(Written, title=TITLE + "SessionFork"):
    """The session of a task as it was put down after `turn`, for another task to go on with. `Dagbok.fork`
    makes one; the two sessions have nothing to do with each other from then on."""

    run: TaskId
    task: TaskId
    turn: Integer = Field(gt=0)
    digest: Sha256
    sha256: Sha256
    size_bytes: Integer = Field(gt=0)


class TaskSpec(Written, title=TITLE + "TaskSpec"):
    """One task: what is to be done (`goal`, `inputs`), by whom (`worker`), and who says that it is done (`verifier`).

    - `contract`: what the verifier holds the result to, any JSON value; `inputs`: what the worker needs, any JSON
      value.
    - `depends_on`: tasks whose published artifacts the worker may read; the task starts when all of them are verified
      or skipped, and is skipped itself when no edge is taken. An edge may have a condition: see `When`.
    - `join`: "any": one edge that is taken is enough; "all": the task is skipped unless every edge is taken.
    - `pool`: the processes that serve it. None: the default pool of the program that starts it.
    - `priority`: larger first. `max_attempts`: so many may fail before the task does; none: the run's limit.
    - `timeout_s`: how long one attempt of the worker may take; none: as long as it likes. `lease_s`: how long an
      attempt whose process is not heard of is left to it; while the process lives, it renews the lease by itself.
    - `proposal_verifier`: who judges a decomposition of this task; none: the verifier if it judges decompositions, else
      whoever judges those of the task that created it, and at last the built-in check of the structure.
    - `child_verifiers`: the only verifiers that tasks created below this one may name; none: those of the task that
      created it, and without any list none that gives a weaker assurance than the verifier of the parent.
    - `limits`: what an attempt may use, see `TaskLimits`.
    - `session`: what the worker goes on with, see `SessionFork`; none: it begins anew.
    - `id`: unique in the run; none: derived.
    """

    goal: Annotated[str, StringConstraints(min_length=1, pattern=r"\S")]
    worker: Key
    verifier: Key
    id: TaskId | None = None
    depends_on: Sequence[TaskId | When] = ()
    join: Join = "any"
    inputs: JsonValue = None
    contract: JsonValue = None
    metadata: JsonValue = None
    proposal_verifier: Key | None = None
    pool: Key | None = None
    priority: Integer = Field(default=0, ge=-(2**31), lt=2**31)
    timeout_s: Seconds | None = Field(default=None, gt=0, le=10**8)
    lease_s: Seconds = Field(default=60.0, ge=0.05, le=10**6)
    max_attempts: Integer | None = Field(default=None, gt=0, le=1000)
    child_verifiers: tuple[Key, ...] | None = None
    limits: TaskLimits | None = None
    session: SessionFork | None = None

    @field_validator("depends_on")
    @classmethod
    def _is_frozen(cls, value: Sequence[TaskId | When]) -> Sequence[TaskId | When]:
        return tuple(value)

    @field_validator("inputs", "contract", "metadata")
    @classmethod
    def _is_json(cls, value: JsonValue, field: ValidationInfo) -> JsonValue:
        canonical(value, f"{field.field_name} of a TaskSpec", Code.INVALID_SPEC)
        return value


def _listed(values: object) -> tuple[Any, ...]:
    """As the model keeps them. What is no list is left to the model to refuse; a text is no list of its letters."""
    return tuple(values) if isinstance(values, Iterable) and not isinstance(values, str) else cast("Any", values)


Content = Any
"""Bytes, or a JSON value."""


class Artifact(Written, title=TITLE + "Artifact"):
    """Bytes or a JSON value that a candidate hands over, with its media type (none: told from the content)."""

    content: Content
    media_type: str | None = None


class Outcome(Written, title=TITLE + "Outcome"):
    """What a worker returns. Make one with `candidate`, `decompose` or `blocked`; plain text is never an outcome."""

    kind: Literal["candidate", "decompose", "blocked"]
    artifacts: Mapping[str, Artifact] = Field(default_factory=dict)
    outputs: JsonValue = None
    tasks: tuple[TaskSpec, ...] = ()
    reuse: tuple[TaskId, ...] = ()
    rationale: str = ""
    composition_contract: JsonValue = None
    expected_graph_revision: Integer | None = None
    reason: str = ""
    usage: Usage | None = None

    @classmethod
    def candidate(
        cls,
        content: Content,
        *,
        media_type: str | None = None,
        artifacts: Mapping[str, Content | Artifact] | None = None,
        outputs: JsonValue = None,
        usage: Usage | None = None,
    ) -> Outcome:
        """A result to be verified: a JSON value or bytes, named `result`, and further `artifacts` by name.

        `outputs` are small control values (JSON, up to 32 KiB) that the graph may branch on. `usage`: what the attempt
        used, here and in the other two.
        """
        named = {"result": Artifact(content=content, media_type=media_type)}
        if artifacts is not None and not isinstance(artifacts, Mapping):
            return cls(kind="candidate", artifacts=artifacts)  # which says what is wrong with them
        for name, item in (artifacts or {}).items():
            named[name] = item if isinstance(item, Artifact) else Artifact(content=item)
        return cls(kind="candidate", artifacts=named, outputs=outputs, usage=usage)

    @classmethod
    def decompose(
        cls,
        tasks: Sequence[TaskSpec],
        *,
        reuse: Sequence[str] = (),
        rationale: str = "",
        composition_contract: JsonValue = None,
        expected_graph_revision: int | None = None,
        usage: Usage | None = None,
    ) -> Outcome:
        """Do these tasks first (and wait for those in `reuse`); then this task runs again, in phase `integrate`.

        `expected_graph_revision`: refuse when the graph has changed since; none: fit it into the graph as it is.
        """
        return cls(
            kind="decompose",
            tasks=_listed(tasks),
            reuse=_listed(reuse),
            rationale=rationale,
            composition_contract=composition_contract,
            expected_graph_revision=expected_graph_revision,
            usage=usage,
        )

    @classmethod
    def blocked(cls, reason: str, *, usage: Usage | None = None) -> Outcome:
        """A person has to do something first; `reason` says what."""
        return cls(kind="blocked", reason=reason, usage=usage)


class Verdict(Written, title=TITLE + "Verdict"):
    """What a verifier returns, when true or false is not enough. Only `pass` publishes.

    `diagnostics` (any JSON value) reach the next attempt of the worker; `evidence` stays with the report.
    """

    verdict: VerdictWord
    diagnostics: JsonValue = None
    evidence: JsonValue = None

    @classmethod
    def passed(cls, *, evidence: JsonValue = None) -> Verdict:
        """The candidate is what the contract asks for."""
        return cls(verdict="pass", evidence=evidence)

    @classmethod
    def failed(cls, diagnostics: JsonValue, *, evidence: JsonValue = None) -> Verdict:
        """It is not; `diagnostics` say why, so that the next attempt can mend it."""
        return cls(verdict="fail", diagnostics=diagnostics, evidence=evidence)

    @classmethod
    def inconclusive(cls, diagnostics: JsonValue) -> Verdict:
        """Cannot be told; a person has to look."""
        return cls(verdict="inconclusive", diagnostics=diagnostics)

    @classmethod
    def error(cls, diagnostics: JsonValue) -> Verdict:
        """The verifier itself did not work; it is asked again, the worker is not."""
        return cls(verdict="error", diagnostics=diagnostics)
