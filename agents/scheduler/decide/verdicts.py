"""Decides what a verifier says: `SubmitVerdict`. Only a passing report, bound to this very review, publishes."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from dagbok.agents.scheduler.decide.cause import By
from dagbok.agents.scheduler.decide.conditions import not_taken
from dagbok.agents.scheduler.decide.decompositions import accept, check_proposal, refuse
from dagbok.agents.scheduler.decide.guards import held_attempt
from dagbok.agents.scheduler.decide.judges import judge_of
from dagbok.agents.scheduler.decide.payload import canonical_payload, check_usage
from dagbok.agents.scheduler.decide.proceed import proceed
from dagbok.agents.scheduler.decide.retry import retry_review, retry_work
from dagbok.events.canonical import sha256_hex
from dagbok.events.codes import Code
from dagbok.events.errors import Refused
from dagbok.events.run.commands import SubmitVerdict
from dagbok.events.run.events import Event, TaskBlocked, TaskVerified, VerdictRecorded
from dagbok.events.run.values import Report, Usage
from dagbok.projections.task_graph.state import Attempt, RunState, Staged, TaskNode

SHOWN_CHARS = 500


def submit(run: RunState, command: SubmitVerdict, by: By) -> Iterator[Event]:
    """Record the report and do what its verdict says."""
    node, attempt = held_attempt(run, command.task, command.epoch, command.claim, by, "verify")
    report, staged = _canonical(command.report), node.staged
    if staged is None:
        raise Refused(Code.STALE_ATTEMPT, f"task {node.id} has nothing to judge")
    _check_binding(run, node, attempt, staged, report)
    check_usage(command.usage)
    report_id = sha256_hex(msgspec.json.encode(report))
    yield VerdictRecorded(node.id, command.epoch, command.claim, report_id, report, command.usage)
    if report.verdict == "pass":
        yield from _passed(run, node, staged, command, report_id, by)
    elif report.verdict == "fail":
        yield from retry_work(run, node, Code.VERIFICATION_FAILED, _shown(report), by)
    elif report.verdict == "error":
        yield from retry_review(run, node, _shown(report), by)
    else:
        yield TaskBlocked(node.id, Code.INCONCLUSIVE, _shown(report))
        yield from proceed(run, by.now_ms)


def _passed(
    run: RunState, node: TaskNode, staged: Staged, command: SubmitVerdict, report_id: str, by: By
) -> Iterator[Event]:
    proposal = staged.proposal
    if proposal is None:
        yield TaskVerified(node.id, report_id, not_taken(run, node, staged.outputs))
        yield from proceed(run, by.now_ms)
        return
    # The graph may have changed since the proposal was made, so it is held to the rules again.
    digest = staged.subject[0]
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
            usage=Usage(),
            by=by,
            made=staged.place[0],
        )
        return
    judge = command.report.verifier
    yield from accept(
        run, node, proposal, entries, claim=command.claim, judge=judge, digest=digest, usage=Usage(), by=by
    )


def _check_binding(run: RunState, node: TaskNode, attempt: Attempt, staged: Staged, report: Report) -> None:
    """Everything that binds a report to this review is compared when it is decided, whatever was compared before."""
    key = judge_of(run, node)
    pin = run.bound().verifiers[key]
    binding = (
        ("kind", report.kind, staged.kind),
        ("verifier", report.verifier, key),
        ("version", report.version, pin.version),
        ("config digest", report.digest, pin.digest),
        ("assurance", report.assurance, pin.assurance),
        ("input hash", report.input_hash, attempt.input_hash),
        ("candidate hashes", report.subject, staged.subject),
    )
    for name, got, bound in binding:
        if got != bound:
            raise Refused(Code.VERDICT_MISMATCH, f"the report on task {node.id} has {name} {got!r}, bound is {bound!r}")


def _canonical(report: Report) -> Report:
    return msgspec.structs.replace(
        report,
        diagnostics=canonical_payload("diagnostics", report.diagnostics),
        evidence=canonical_payload("evidence", report.evidence),
    )


def _shown(report: Report) -> str:
    text = bytes(report.diagnostics).decode()
    return f"verifier {report.verifier}: {text[:SHOWN_CHARS]}" if text != "null" else f"verifier {report.verifier}"
