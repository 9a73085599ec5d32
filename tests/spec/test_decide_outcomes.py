"""What a worker returns: a candidate that awaits its verdict, or a reason why it cannot go on."""

from __future__ import annotations

import msgspec
import pytest

from dagbok.events.canonical import sha256_hex
from dagbok.events.codes import Code
from dagbok.events.run.commands import SubmitOutcome
from dagbok.events.run.events import AttemptOpened, CandidateSubmitted, RunBlocked, TaskBlocked
from dagbok.events.run.values import ArtifactItem, ArtifactRef, Candidate, Decompose, OutcomeData, Place, Usage
from dagbok.testing import CLAIM, OTHER_CLAIM, act, blocked, candidate, decompose, like, run_of, task

RUNNING = run_of(task("a"), task("z")).starts("a")
STORED = ArtifactItem("big", "ab" * 32, 70_000, "application/pdf")


def test_a_candidate_is_staged_and_its_verifier_is_asked() -> None:
    outcome = candidate({"lines": 3})
    item = outcome.artifacts[0]
    staged = RUNNING.submits("a", outcome)
    staged.then(
        CandidateSubmitted("a", 1, CLAIM, (item,), subject=(item.sha256,)),
        like(AttemptOpened, task="a", epoch=2, kind="verify", key="check", phase="solve"),
    )
    staged.then_task("a", status="verifying", published=())


def test_the_state_knows_where_the_bytes_are_and_does_not_hold_them() -> None:
    inline = candidate({"lines": 3}).artifacts[0]
    staged = RUNNING.submits("a", Candidate((inline, STORED))).task("a").staged
    assert staged is not None
    assert staged.artifacts == (
        ArtifactRef("result", inline.sha256, inline.size_bytes, inline.media_type, Place(0, 2, 0, 0)),
        ArtifactRef("big", STORED.sha256, 70_000, "application/pdf"),
    )
    assert inline.inline is not None
    assert inline.inline not in msgspec.json.encode(staged)


def test_control_values_are_canonical_and_bound_with_the_artifacts() -> None:
    outcome = msgspec.structs.replace(candidate(1), outputs=msgspec.Raw(b'{"b": 1, "a": 2}'))
    item = outcome.artifacts[0]
    event = RUNNING.submits("a", outcome).events[0]
    assert isinstance(event, CandidateSubmitted)
    assert bytes(event.outputs) == b'{"a":2,"b":1}'
    assert event.subject == (item.sha256, sha256_hex(b'{"a":2,"b":1}'))


def test_a_pure_worker_needs_no_claim_before() -> None:
    """Its outcome claims and closes the attempt; a second run of it is too late."""
    opened = run_of(task("a"))
    done = opened.submits("a", candidate(1), claim=OTHER_CLAIM, id="first")
    done.then(like(CandidateSubmitted, claim=OTHER_CLAIM), AttemptOpened)
    second = act.submit_outcome(opened.state, "a", candidate(2))
    done.when(second).then_refused(Code.STALE_ATTEMPT)


def test_an_outcome_for_another_input_is_refused() -> None:
    other = act.submit_outcome(RUNNING.state, "a", candidate(1), input_hash="0" * 64)
    RUNNING.when(other).then_refused(Code.VERSION_CONFLICT, naming="another input")


def _inline(data: bytes, **changes: object) -> Candidate:
    item = candidate(data).artifacts[0]
    return Candidate((msgspec.structs.replace(item, **changes),))


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (Candidate(()), Code.INVALID_OUTCOME),
        (Candidate((STORED, STORED)), Code.INVALID_OUTCOME),
        (_inline(b"x", name=" "), Code.INVALID_OUTCOME),
        (_inline(b"x", name="n" * 257), Code.INVALID_OUTCOME),
        (_inline(b"x", size_bytes=2), Code.ARTIFACT_INTEGRITY),
        (_inline(b"x", sha256="0" * 64), Code.ARTIFACT_INTEGRITY),
        (_inline(b"x" * 32_769), Code.TOO_LARGE),
        (_inline(b"x", inline=None, sha256="short"), Code.ARTIFACT_INTEGRITY),
        (_inline(b"x", inline=None, sha256="../" * 21 + "x"), Code.ARTIFACT_INTEGRITY),
        (_inline(b"x", inline=None, sha256="AB" * 32), Code.ARTIFACT_INTEGRITY),
        (_inline(b"x", inline=None, size_bytes=-1), Code.ARTIFACT_INTEGRITY),
        (_inline(b"x", inline=None, size_bytes=2**70), Code.ARTIFACT_INTEGRITY),
        (candidate(1, outputs="x" * 32_768), Code.TOO_LARGE),
        (msgspec.structs.replace(candidate(1), outputs=msgspec.Raw(b"[1e999]")), Code.INVALID_OUTCOME),
        (msgspec.structs.replace(candidate(1), outputs=msgspec.Raw(b'"\xff"')), Code.INVALID_OUTCOME),
        (msgspec.structs.replace(candidate(1), outputs=msgspec.Raw(b'"\\ud800"')), Code.INVALID_OUTCOME),
        (Decompose((task("b"),), composition_contract=msgspec.Raw(b"[1e999]")), Code.INVALID_OUTCOME),
        (blocked(" \n"), Code.INVALID_OUTCOME),
    ],
)
def test_an_outcome_that_makes_no_sense_changes_nothing(outcome: OutcomeData, code: Code) -> None:
    RUNNING.submits("a", outcome).then_refused(code).then_task("a", status="running", epoch=1)


@pytest.mark.parametrize(
    "usage", [Usage(tokens=-1), Usage(tokens=2**70), Usage(cost="much"), Usage(cost="-1"), Usage(cost="1e9")]
)
def test_a_use_that_cannot_be_summed_is_refused(usage: Usage) -> None:
    command = msgspec.structs.replace(act.submit_outcome(RUNNING.state, "a", candidate(1)), usage=usage)
    RUNNING.when(command).then_refused(Code.INVALID_OUTCOME)


def test_what_was_used_is_recorded() -> None:
    usage = Usage(tokens=1_200, cost="0.0375")
    for outcome in (candidate(1), decompose(task("b"))):
        command = msgspec.structs.replace(act.submit_outcome(RUNNING.state, "a", outcome), usage=usage)
        assert RUNNING.when(command).events[0].usage == usage  # type: ignore[attr-defined]


def test_the_largest_inline_artifact_fits() -> None:
    RUNNING.submits("a", candidate(b"x" * 32_768)).then(CandidateSubmitted, AttemptOpened)


def test_an_outcome_comes_once_whatever_became_of_the_task() -> None:
    command = act.submit_outcome(RUNNING.state, "a", candidate(1))
    staged = RUNNING.when(command, id="once")
    staged.when(command, id="once").then_repeated(of=2)
    staged.judges("a", "pass").when(command, id="once").then_repeated(of=2)
    staged.judges("a", "fail").fires("backoff", "a").when(command, id="once").then_repeated(of=2)
    staged.when(command, id="another").then_refused(Code.STALE_ATTEMPT)


def test_a_worker_that_is_blocked_says_why() -> None:
    stuck = RUNNING.submits("a", blocked("  no key\n"))
    stuck.then(TaskBlocked("a", "worker_blocked", "no key", epoch=1, claim=CLAIM))
    stuck.then_task("a", status="blocked", attempt=None, failures=0)


def test_a_run_with_nothing_left_but_a_blocked_task_is_blocked() -> None:
    run_of(task("a")).starts("a").submits("a", blocked("no key")).then(
        TaskBlocked, RunBlocked("worker_blocked", ("a",))
    )


def test_a_long_reason_is_cut() -> None:
    event = RUNNING.submits("a", blocked("r" * 9_000)).events[0]
    assert isinstance(event, TaskBlocked)
    assert len(event.reason) == 4_000


def test_the_command_is_the_one_that_workers_send() -> None:
    assert isinstance(act.submit_outcome(RUNNING.state, "a", candidate(1)), SubmitOutcome)
