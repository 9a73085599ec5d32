"""Decides what a worker returned: `SubmitOutcome`."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from dagbok.agents.scheduler.decide.budget import artifact_breach, refuse_artifacts
from dagbok.agents.scheduler.decide.cause import By
from dagbok.agents.scheduler.decide.decompositions import accept, check_proposal, refuse
from dagbok.agents.scheduler.decide.guards import held_attempt
from dagbok.agents.scheduler.decide.judges import decomposition_judge
from dagbok.agents.scheduler.decide.payload import MAX_NUMBER, canonical_payload, check_usage
from dagbok.agents.scheduler.decide.proceed import proceed
from dagbok.events.canonical import SHA256, sha256_hex
from dagbok.events.codes import Code
from dagbok.events.errors import Refused
from dagbok.events.run.commands import SubmitOutcome
from dagbok.events.run.events import CandidateSubmitted, DecompositionProposed, Event, TaskBlocked
from dagbok.events.run.values import MAX_INLINE_BYTES, STRUCTURE, ArtifactItem, Blocked, Candidate, Decompose
from dagbok.projections.task_graph.state import Attempt, RunState, TaskNode

MAX_REASON_CHARS = 4_000
MAX_NAME_CHARS = 256


def submit(run: RunState, command: SubmitOutcome, by: By) -> Iterator[Event]:
    """A candidate is staged for its verifier, a decomposition is judged, a block waits for a person."""
    node, attempt = held_attempt(run, command.task, command.epoch, command.claim, by, "work")
    if attempt.input_hash != command.input_hash:
        raise Refused(Code.VERSION_CONFLICT, f"the outcome is for another input of task {node.id}")
    check_usage(command.usage)
    outcome = command.outcome
    if isinstance(outcome, Candidate):
        yield from _candidate(run, node, command, outcome, by)
    elif isinstance(outcome, Decompose):
        yield from _decompose(run, node, attempt, command, outcome, by)
    else:
        yield from _block(run, node, command, outcome, by)


def subject_of(candidate: Candidate) -> tuple[str, ...]:
    """What a report on the candidate must name: the hash of each artifact, then that of the control values if any."""
    hashes = tuple([item.sha256 for item in candidate.artifacts])
    outputs = bytes(candidate.outputs)
    return hashes if outputs == b"null" else (*hashes, sha256_hex(outputs))


def _candidate(run: RunState, node: TaskNode, command: SubmitOutcome, candidate: Candidate, by: By) -> Iterator[Event]:
    outputs = _checked(candidate)
    if breach := artifact_breach(run, candidate.artifacts):
        yield from refuse_artifacts(node, breach, command.usage)
        yield from proceed(run, by.now_ms)
        return
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


def _decompose(
    run: RunState, node: TaskNode, attempt: Attempt, command: SubmitOutcome, proposal: Decompose, by: By
) -> Iterator[Event]:
    proposal = msgspec.structs.replace(
        proposal, composition_contract=canonical_payload("composition contract", proposal.composition_contract)
    )
    digest = sha256_hex(msgspec.json.encode(proposal))
    try:
        entries = check_proposal(run, node, proposal)
    except Refused as error:
        yield from refuse(
            run,
            node,
            proposal,
            error,
            claim=command.claim,
            digest=digest,
            usage=command.usage,
            by=by,
            made=attempt.opened_at[0],
        )
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
    yield TaskBlocked(node.id, Code.WORKER_BLOCKED, reason, command.epoch, command.claim, command.usage)
    yield from proceed(run, by.now_ms)


def _checked(candidate: Candidate) -> msgspec.Raw:
    """The control values in canonical form; raises `Refused` for artifacts that are not what they say they are."""
    if not candidate.artifacts:
        raise Refused(Code.INVALID_OUTCOME, "a candidate has at least one artifact")
    if len({item.name for item in candidate.artifacts}) < len(candidate.artifacts):
        raise Refused(Code.INVALID_OUTCOME, "the artifacts of a candidate have different names")
    for item in candidate.artifacts:
        check_item(item)
    outputs = canonical_payload("outputs", candidate.outputs)
    if len(bytes(outputs)) > MAX_INLINE_BYTES:
        raise Refused(Code.TOO_LARGE, f"outputs of {len(bytes(outputs))} bytes, at most {MAX_INLINE_BYTES}")
    return outputs


def check_item(item: ArtifactItem) -> None:
    """Raises `Refused` for bytes that are not what they say they are."""
    if not item.name.strip() or len(item.name) > MAX_NAME_CHARS:
        raise Refused(Code.INVALID_OUTCOME, f"the name of an artifact is blank or longer than {MAX_NAME_CHARS}")
    if item.inline is None:
        if not SHA256.fullmatch(item.sha256) or not 0 <= item.size_bytes <= MAX_NUMBER:
            raise Refused(Code.ARTIFACT_INTEGRITY, f"artifact {item.name!r} has no valid hash or size")
        return
    if len(item.inline) > MAX_INLINE_BYTES:
        raise Refused(Code.TOO_LARGE, f"artifact {item.name!r} has {len(item.inline)} bytes inline")
    if len(item.inline) != item.size_bytes or sha256_hex(item.inline) != item.sha256:
        raise Refused(Code.ARTIFACT_INTEGRITY, f"the bytes of artifact {item.name!r} do not have its hash and size")
