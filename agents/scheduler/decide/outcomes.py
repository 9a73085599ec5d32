"""Decides what a worker returned: `SubmitOutcome`."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from dagbok.agents.scheduler.decide.cause import By
from dagbok.agents.scheduler.decide.decompositions import accept, check_proposal, refuse
from dagbok.agents.scheduler.decide.guards import held_attempt
from dagbok.agents.scheduler.decide.proceed import decomposition_judge, proceed
from dagbok.events.canonical import canonical_text, sha256_hex
from dagbok.events.codes import Code
from dagbok.events.errors import Refused
from dagbok.events.run.commands import SubmitOutcome
from dagbok.events.run.events import CandidateSubmitted, DecompositionProposed, Event, TaskBlocked
from dagbok.events.run.values import NULL, STRUCTURE, ArtifactItem, Blocked, Candidate, Decompose
from dagbok.projections.task_graph.state import RunState, TaskNode

MAX_INLINE_BYTES = 32 * 1024
MAX_REASON_CHARS = 4_000


def submit(run: RunState, command: SubmitOutcome, by: By) -> Iterator[Event]:
    """A candidate is staged for its verifier, a decomposition is judged, a block waits for a person."""
    node, attempt = held_attempt(run, command.task, command.epoch, command.claim, by, "work")
    if attempt.input_hash != command.input_hash:
        raise Refused(Code.VERSION_CONFLICT, f"the outcome is for another input of task {node.id}")
    outcome = command.outcome
    if isinstance(outcome, Candidate):
        yield from _candidate(run, node, command, outcome, by)
    elif isinstance(outcome, Decompose):
        yield from _decompose(run, node, command, outcome, by)
    else:
        yield from _block(run, node, command, outcome, by)


def subject_of(candidate: Candidate) -> tuple[str, ...]:
    """What a report on the candidate must name: the hash of each artifact, then that of the control values if any."""
    hashes = tuple([item.sha256 for item in candidate.artifacts])
    outputs = bytes(candidate.outputs)
    return hashes if outputs == b"null" else (*hashes, sha256_hex(outputs))


def _candidate(run: RunState, node: TaskNode, command: SubmitOutcome, candidate: Candidate, by: By) -> Iterator[Event]:
    outputs = _checked(candidate)
    yield CandidateSubmitted(
        task=node.id,
        epoch=command.epoch,
        claim=command.claim,
        artifacts=candidate.artifacts,
        subject=subject_of(msgspec.structs.replace(candidate, outputs=outputs)),
        outputs=outputs,
        usage=command.usage,
    )
    yield from proceed(run, by.now_ms)


def _decompose(run: RunState, node: TaskNode, command: SubmitOutcome, proposal: Decompose, by: By) -> Iterator[Event]:
    digest = sha256_hex(msgspec.json.encode(proposal))
    try:
        entries = check_proposal(run, node, proposal)
    except Refused as error:
        yield from refuse(run, node, proposal, error, claim=command.claim, digest=digest, usage=command.usage, by=by)
        return
    judge = decomposition_judge(run, node)
    if judge == STRUCTURE:
        yield from accept(
            run, node, proposal, entries, claim=command.claim, judge=judge, digest=digest, usage=command.usage, by=by
        )
        return
    specs = tuple([entry.spec for entry in entries])
    proposal = msgspec.structs.replace(proposal, tasks=specs)
    digest = sha256_hex(msgspec.json.encode(proposal))
    yield DecompositionProposed(node.id, command.epoch, command.claim, proposal, digest, command.usage)
    yield from proceed(run, by.now_ms)


def _block(run: RunState, node: TaskNode, command: SubmitOutcome, outcome: Blocked, by: By) -> Iterator[Event]:
    reason = outcome.reason.strip()[:MAX_REASON_CHARS]
    if not reason:
        raise Refused(Code.INVALID_OUTCOME, "a blocked outcome says why")
    yield TaskBlocked(node.id, Code.WORKER_BLOCKED, reason, command.epoch, command.claim)
    yield from proceed(run, by.now_ms)


def _checked(candidate: Candidate) -> msgspec.Raw:
    """The control values in canonical form; raises `Refused` for artifacts that are not what they say they are."""
    if not candidate.artifacts:
        raise Refused(Code.INVALID_OUTCOME, "a candidate has at least one artifact")
    if len({item.name for item in candidate.artifacts}) < len(candidate.artifacts):
        raise Refused(Code.INVALID_OUTCOME, "the artifacts of a candidate have different names")
    for item in candidate.artifacts:
        _check_item(item)
    text = bytes(candidate.outputs)
    if text == b"null":
        return NULL
    if len(text) > MAX_INLINE_BYTES:
        raise Refused(Code.TOO_LARGE, f"outputs of {len(text)} bytes, at most {MAX_INLINE_BYTES}")
    return msgspec.Raw(canonical_text(text))


def _check_item(item: ArtifactItem) -> None:
    if item.inline is None:
        if len(item.sha256) != 64 or item.size_bytes < 0:
            raise Refused(Code.ARTIFACT_INTEGRITY, f"artifact {item.name!r} has no valid hash or size")
        return
    if len(item.inline) > MAX_INLINE_BYTES:
        raise Refused(Code.TOO_LARGE, f"artifact {item.name!r} has {len(item.inline)} bytes inline")
    if len(item.inline) != item.size_bytes or sha256_hex(item.inline) != item.sha256:
        raise Refused(Code.ARTIFACT_INTEGRITY, f"the bytes of artifact {item.name!r} do not have its hash and size")
