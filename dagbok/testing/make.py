"""Short ways to write the values that stand in commands: tasks, outcomes, pins, claims. All have defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from dagbok.events.canonical import Json, canonical, sha256_hex
from dagbok.events.run.commands import StartRun
from dagbok.events.run.values import (
    NULL,
    ArtifactItem,
    Assurance,
    Blocked,
    Candidate,
    Claim,
    Comparison,
    Condition,
    Decompose,
    Failure,
    FailurePolicy,
    Join,
    Judged,
    Limits,
    Pinned,
    Spec,
    TaskLimits,
    VerifierPin,
)

CHECK: Final = "check"
"""The verifier that tasks name unless told otherwise; `start` pins it."""
CLAIM: Final = Claim("process-1", 1, "nonce-1")
OTHER_CLAIM: Final = Claim("process-2", 1, "nonce-2")


def task(
    id: str,
    *,
    depends_on: tuple[str, ...] = (),
    when: tuple[Condition, ...] = (),
    join: Join = "any",
    goal: str = "do it",
    worker: str = "work",
    verifier: str = CHECK,
    proposal_verifier: str | None = None,
    child_verifiers: tuple[str, ...] | None = None,
    contract: Json = None,
    inputs: Json = None,
    pool: str = "default",
    priority: int = 0,
    timeout_ms: int | None = None,
    lease_ms: int = 60_000,
    max_attempts: int | None = None,
    limits: TaskLimits | None = None,
) -> Spec:
    """The spec of a task."""
    return Spec(
        id=id,
        goal=goal,
        worker=worker,
        verifier=verifier,
        depends_on=depends_on,
        proposal_verifier=proposal_verifier,
        contract=_raw(contract),
        inputs=_raw(inputs),
        pool=pool,
        priority=priority,
        timeout_ms=timeout_ms,
        lease_ms=lease_ms,
        max_attempts=max_attempts,
        when=when,
        child_verifiers=child_verifiers,
        limits=limits,
        join=join,
    )


def when(task: str, output: str, *values: Json, op: Comparison = "in") -> Condition:
    """A condition on the edge to `task`: its control value at `output` (a JSON Pointer) is one of the values, or
    compares with them by `op`."""
    return Condition(task, output, tuple([msgspec.Raw(canonical(value)) for value in values]), op)


def pin(
    *judges: Judged, version: str = "1", digest: str = "d1", assurance: Assurance = "executable_checks"
) -> VerifierPin:
    """The pin of a verifier that judges candidates, unless told otherwise."""
    return VerifierPin(version=version, digest=digest, assurance=assurance, judges=judges or ("candidate",))


def start(
    *tasks: Spec,
    roots: tuple[str, ...] | None = None,
    verifiers: Mapping[str, VerifierPin] | None = None,
    failure_policy: FailurePolicy = "continue_independent",
    max_depth: int = 8,
    max_decompositions: int = 1,
    limits: Limits | None = None,
) -> StartRun:
    """The command that starts a run. Without `roots`, those are the tasks that no other one depends on."""
    needed = {dep for spec in tasks for dep in spec.depends_on}
    return StartRun(
        tasks=tasks,
        roots=tuple(spec.id for spec in tasks if spec.id not in needed) if roots is None else roots,
        pinned=Pinned(
            verifiers={CHECK: pin()} if verifiers is None else dict(verifiers),
            failure_policy=failure_policy,
            max_depth=max_depth,
            max_decompositions=max_decompositions,
        ),
        limits=limits or Limits(),
    )


def candidate(value: Json | bytes = None, *, name: str = "result", outputs: Json = None) -> Candidate:
    """The outcome of a worker that returned a JSON value or bytes: one inline artifact."""
    data = value if isinstance(value, bytes) else canonical(value)
    media_type = "application/octet-stream" if isinstance(value, bytes) else "application/json"
    return Candidate((ArtifactItem(name, sha256_hex(data), len(data), media_type, data),), _raw(outputs))


def decompose(
    *tasks: Spec,
    reuse: tuple[str, ...] = (),
    composition_contract: Json = None,
    expected_graph_revision: int | None = None,
) -> Decompose:
    """The outcome of a worker that asks for new tasks, for the results of existing ones, or both."""
    return Decompose(
        tasks=tasks,
        reuse=reuse,
        composition_contract=_raw(composition_contract),
        expected_graph_revision=expected_graph_revision,
    )


def blocked(reason: str = "needs a person") -> Blocked:
    """The outcome of a worker that cannot go on by itself."""
    return Blocked(reason)


def failure(message: str = "it broke", *, terminal: bool = False, code: str = "worker_failed") -> Failure:
    """A failure, retryable unless told otherwise."""
    return Failure("terminal" if terminal else "retryable", code, "ValueError", message)


def _raw(value: Json) -> msgspec.Raw:
    return NULL if value is None else msgspec.Raw(canonical(value))
