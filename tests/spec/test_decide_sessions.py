"""What a worker keeps from turn to turn: put down in a running attempt, gone on with by the next."""

from __future__ import annotations

import msgspec
import pytest

from dagbok.events.canonical import sha256_hex
from dagbok.events.codes import Code
from dagbok.events.run.commands import PauseRun
from dagbok.events.run.events import AttemptStarted, SessionResumed, SessionSuspended
from dagbok.events.run.values import ArtifactItem, Limits, SessionSeed
from dagbok.events.session import session_digest
from dagbok.testing import OTHER_CLAIM, Scenario, act, candidate, given, like, run_of, start, task

ONE, TWO = b'{"turns":1}', b'{"turns":2}'
FIRST = session_digest("", 0, sha256_hex(ONE))


def running() -> Scenario:
    return run_of(task("a", lease_ms=5_000)).starts("a")


def test_a_running_attempt_puts_its_session_down() -> None:
    running().suspends("a", ONE).then(
        like(SessionSuspended, task="a", epoch=1, turn=1, keep=0, digest=FIRST, size_bytes=len(ONE))
    ).then_task("a", status="running")


def test_parts_that_are_kept_stand_before_the_new_one() -> None:
    twice = running().suspends("a", ONE).suspends("a", TWO, keep=1)
    second = session_digest(FIRST, 1, sha256_hex(TWO))
    twice.then(like(SessionSuspended, turn=2, keep=1, digest=second, size_bytes=len(ONE) + len(TWO)))
    session = twice.task("a").session
    assert session is not None
    assert [part.sha256 for part in session.parts] == [sha256_hex(ONE), sha256_hex(TWO)]
    replaced = twice.suspends("a", ONE).task("a").session
    assert replaced is not None
    assert [part.sha256 for part in replaced.parts] == [sha256_hex(ONE)]


def test_the_next_attempt_goes_on_with_it_whatever_became_of_the_one_before() -> None:
    put_down = running().suspends("a", ONE)
    resumed = SessionResumed("a", 2, 1, FIRST)
    put_down.releases("a").starts("a").then(AttemptStarted, resumed)
    put_down.fires("lease", "a").starts("a", claim=OTHER_CLAIM).then(AttemptStarted, resumed)
    put_down.fails("a").fires("backoff", "a").starts("a").then(AttemptStarted, resumed)


def test_the_verdict_of_a_reviewer_sends_the_worker_back_to_its_session() -> None:
    review = running().suspends("a", ONE).submits("a", candidate(1)).starts("a").then(AttemptStarted)
    rejected = review.judges("a", "fail")
    rejected.fires("backoff", "a").starts("a").then(AttemptStarted, SessionResumed("a", 3, 1, FIRST))


def test_the_same_command_again_is_a_repeat_also_when_the_attempt_is_over() -> None:
    put_down = running().suspends("a", ONE, id="x")
    put_down.suspends("a", ONE, turn=1, id="x").then_repeated()
    put_down.releases("a").suspends("a", ONE, turn=1, id="x").then_repeated()


@pytest.mark.parametrize("turn", [1, 3])
def test_a_turn_follows_the_one_before(turn: int) -> None:
    running().suspends("a", ONE).suspends("a", TWO, turn=turn).then_refused(Code.VERSION_CONFLICT, naming="turn 1")


def test_only_who_holds_the_attempt_puts_it_down() -> None:
    running().suspends("a", ONE, claim=OTHER_CLAIM).then_refused(Code.LEASE_REJECTED)
    running().after(5_000).suspends("a", ONE).then_refused(Code.LEASE_REJECTED, naming="ended")
    run_of(task("a")).suspends("a", ONE).then_refused(Code.LEASE_REJECTED, naming="not claimed")
    review = running().submits("a", candidate(1)).starts("a")
    review.suspends("a", ONE).then_refused(Code.STALE_ATTEMPT, naming="verify")


def test_what_runs_may_put_down_its_session_while_the_run_is_paused() -> None:
    running().when(PauseRun()).suspends("a", ONE).then(SessionSuspended)


@pytest.mark.parametrize("keep", [-1, 2])
def test_parts_that_are_not_there_cannot_be_kept(keep: int) -> None:
    running().suspends("a", ONE).suspends("a", TWO, keep=keep).then_refused(Code.INVALID_OUTCOME, naming="of 1 parts")


def test_a_session_has_a_bounded_number_of_parts() -> None:
    scenario = running()
    for number in range(64):
        scenario = scenario.suspends("a", ONE, keep=number)
    scenario.suspends("a", ONE, keep=64).then_refused(Code.INVALID_OUTCOME)
    scenario.suspends("a", ONE, keep=63).then(SessionSuspended)


def test_a_part_is_what_it_says() -> None:
    false = ArtifactItem("session", sha256_hex(ONE), 1, "application/json", ONE)
    command = msgspec.structs.replace(act.suspend_session(running().state, "a", ONE), part=false)
    running().when(command).then_refused(Code.ARTIFACT_INTEGRITY)


def test_sessions_count_among_the_bytes_of_the_run() -> None:
    short = given().when(start(task("a"), limits=Limits(max_total_artifact_bytes=20))).starts("a").suspends("a", ONE)
    short.then_state(artifact_bytes=len(ONE))
    short.suspends("a", TWO).then_refused(Code.BUDGET_EXHAUSTED, naming="22 bytes")


SEED = SessionSeed("other", "b", 4, "ab" * 32, "cd" * 32, 90_000)


def test_a_task_may_begin_with_the_session_of_another() -> None:
    forked = run_of(msgspec.structs.replace(task("a"), session=SEED)).starts("a")
    named = session_digest(SEED.digest, 0, SEED.sha256)
    forked.then(AttemptStarted, SessionResumed("a", 1, 4, named))
    forked.suspends("a", ONE, keep=1).then(like(SessionSuspended, turn=5, size_bytes=90_000 + len(ONE)))


@pytest.mark.parametrize(
    "wrong", [{"digest": "ab"}, {"sha256": "CD" * 32}, {"turn": 0}, {"size_bytes": -1}, {"run": "../x"}, {"task": ""}]
)
def test_a_seed_is_a_session_that_can_be(wrong: dict[str, str | int]) -> None:
    spec = msgspec.structs.replace(task("a"), session=msgspec.structs.replace(SEED, **wrong))
    given().when(start(spec)).then_refused(Code.INVALID_SPEC, naming="session")
