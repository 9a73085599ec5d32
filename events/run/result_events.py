"""Events about what workers and verifiers return."""

from __future__ import annotations

import msgspec

from dagbok.events.run.event import Event
from dagbok.events.run.values import NULL, ArtifactItem, Claim, Decompose, Report, Usage


class CandidateSubmitted(Event, frozen=True):
    """A worker's result, staged until a verdict passes. `claim` also claims an attempt that was never started."""

    task: str
    epoch: int
    claim: Claim
    artifacts: tuple[ArtifactItem, ...]
    subject: tuple[str, ...]
    outputs: msgspec.Raw = NULL
    usage: Usage = Usage()


class DecompositionProposed(Event, frozen=True):
    """A worker asks for new tasks; a verifier judges it."""

    task: str
    epoch: int
    claim: Claim
    proposal: Decompose
    digest: str
    usage: Usage = Usage()


class DecompositionAccepted(Event, frozen=True):
    """The task waits for `new` and `reused` tasks; `judge` is a verifier's key or `structure`.
    `rationale` and `composition_contract` stand here where no `DecompositionProposed` told them before."""

    task: str
    epoch: int
    claim: Claim
    digest: str
    judge: str
    new: tuple[str, ...]
    reused: tuple[str, ...]
    graph_revision: int
    rationale: str = ""
    composition_contract: msgspec.Raw = NULL
    usage: Usage = Usage()


class DecompositionRefused(Event, frozen=True):
    """The proposal breaks a rule of the graph, or is for another revision of it (`spent` is false then: the task runs
    again)."""

    task: str
    epoch: int
    claim: Claim
    proposal: Decompose
    digest: str
    code: str
    reason: str
    spent: bool
    graph_revision: int
    usage: Usage = Usage()


class VerdictRecorded(Event, frozen=True):
    """The whole report. `claim` also claims a review that was never started."""

    task: str
    epoch: int
    claim: Claim
    report_id: str
    report: Report
    usage: Usage = Usage()
