"""What the model remembers of a task and of its attempt: what was said about them, and nothing that follows from it."""

from __future__ import annotations

from dataclasses import dataclass

from dagbok.events.run.values import ArtifactItem, AttemptKind, Candidate, Claim, Condition, Decompose, Spec
from tests.property.run_model_amounts import NOTHING, Amount


@dataclass
class Attempt:
    """What is open or running. An open one has no claim."""

    kind: AttemptKind
    epoch: int
    input_hash: str
    reserved: Amount = NOTHING
    claim: Claim | None = None
    lease_until_ms: int = 0
    timeout_at_ms: int | None = None


@dataclass
class Task:
    """What was said about a task. `told`: a status that somebody decided (verified, failed, blocked, backoff,
    cancelled, superseded); empty when it follows from edges, from what is staged, and from the attempt. `code`: of a
    block or failure. `made`: how often the graph had changed when it was asked for what it returns. `session`: every
    part that was put down. `took`: whose place it took."""

    spec: Spec
    order: int
    parent: str | None
    deps: list[str]
    when: list[Condition]
    root: bool = False
    took: str | None = None
    told: str = ""
    code: str = ""
    made: int = 0
    staged: Candidate | Decompose | None = None
    attempt: Attempt | None = None
    epoch: int = 0
    due_ms: int = 0
    failures: int = 0
    lost: int = 0
    verifier_errors: int = 0
    conflicts: int = 0
    decompositions: int = 0
    composition: bytes = b"null"
    outputs: object = None
    artifacts: tuple[ArtifactItem, ...] = ()
    session: tuple[ArtifactItem, ...] = ()

    def stop(self, told: str, code: str = "", *, keep: bool = False) -> None:
        """Somebody decided its status; what is staged goes, unless it is kept."""
        self.told, self.code = told, code
        self.staged = self.staged if keep else None
