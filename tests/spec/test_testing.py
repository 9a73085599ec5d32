"""What `dagbok.testing` promises to whoever tests agents with it."""

from __future__ import annotations

import doctest
import inspect

import msgspec
import pytest

import dagbok.testing
from dagbok.events.codes import Code
from dagbok.events.run.commands import CancelRun, PauseRun, ResumeRun
from dagbok.events.run.events import (
    AttemptClosed,
    AttemptOpened,
    AttemptStarted,
    RunAmended,
    RunCancelled,
    RunFailed,
    RunPaused,
    RunReopened,
    RunStarted,
    TaskCancelled,
    TaskRetried,
    TasksAdded,
    TaskUnblocked,
)
from dagbok.events.run.values import Condition
from dagbok.testing import (
    CLAIM,
    Limits,
    TaskLimits,
    Usage,
    blocked,
    candidate,
    decompose,
    failure,
    given,
    like,
    pin,
    run_of,
    start,
    task,
    when,
)

RUN = run_of(task("a"))


def test_the_example_of_the_package_runs() -> None:
    results = doctest.testmod(dagbok.testing)
    assert results.attempted > 5
    assert results.failed == 0


def test_every_public_name_is_there_and_says_what_it_is() -> None:
    for name in dagbok.testing.__all__:
        public = getattr(dagbok.testing, name)
        if inspect.isfunction(public) or inspect.isclass(public):
            assert inspect.getdoc(public), name


def test_a_history_is_a_value() -> None:
    """Two continuations of one history do not know of each other."""
    one, other = RUN.when(PauseRun()), RUN.when(CancelRun())
    one.then(RunPaused).then_state(status="paused")
    other.then_state(status="cancelled")
    RUN.then_state(status="running")


def test_given_events_are_folded_as_one_commit() -> None:
    begun = given().when(start(task("a")))
    again = given(*begun.events)
    assert again.state == begun.state
    again.when(PauseRun()).then(RunPaused()).then_state(status="paused")


def test_an_event_is_expected_whole_by_type_or_by_some_of_its_values() -> None:
    started = RUN.starts("a")
    started.then(AttemptStarted("a", 1, CLAIM, lease_until_ms=60_000))
    started.then(AttemptStarted)
    started.then(like(AttemptStarted, task="a", claim=CLAIM))


@pytest.mark.parametrize(
    "expected",
    [
        (),
        (RunPaused("dinner"),),
        (RunCancelled,),
        (like(RunPaused, reason="dinner"),),
        (RunPaused, RunPaused),
    ],
)
def test_other_events_are_an_error_that_shows_both(expected: tuple[object, ...]) -> None:
    with pytest.raises(AssertionError, match=r"- expected, \+ came"):
        RUN.when(PauseRun("lunch")).then(*expected)  # type: ignore[arg-type]


def test_what_is_expected_has_to_exist() -> None:
    """A misspelt field would be a test that cannot fail for the right reason."""
    with pytest.raises(TypeError, match="no field pahse"):
        like(AttemptOpened, pahse="solve")
    with pytest.raises(AttributeError):
        RUN.then_state(stauts="running")
    with pytest.raises(KeyError):
        RUN.then_task("b", status="ready")


def test_a_refusal_where_events_were_expected_tells_the_code() -> None:
    with pytest.raises(AssertionError, match="DAGBOK-VERSION-CONFLICT"):
        RUN.when(ResumeRun()).then(RunPaused)


def test_events_where_a_refusal_was_expected_are_shown() -> None:
    with pytest.raises(AssertionError, match=r"accepted:\nRunPaused\n    reason = \"lunch\""):
        RUN.when(PauseRun("lunch")).then_refused(Code.RUN_CLOSED)


def test_another_refusal_than_expected_tells_which() -> None:
    refused = RUN.when(ResumeRun()).then_refused(Code.VERSION_CONFLICT, naming="not paused")
    for code, naming in ((Code.RUN_CLOSED, ""), (Code.VERSION_CONFLICT, "the moon")):
        with pytest.raises(AssertionError, match="is running, not paused"):
            refused.then_refused(code, naming=naming)


def test_a_repeat_names_the_commit_that_it_repeats() -> None:
    repeated = RUN.when(start(task("a"))).then_repeated(of=0)
    with pytest.raises(AssertionError, match="at offset 5"):
        repeated.then_repeated(of=5)
    with pytest.raises(AssertionError, match="accepted"):
        RUN.when(PauseRun()).then_repeated()


def test_without_a_command_there_is_nothing_to_compare() -> None:
    with pytest.raises(AssertionError, match="no command was tried"):
        given().then()
    with pytest.raises(AssertionError, match="no command was tried"):
        given().then_repeated()
    with pytest.raises(AssertionError, match="no command was tried"):
        given().then_refused(Code.CYCLE)


def test_a_state_that_differs_is_shown_field_by_field() -> None:
    with pytest.raises(AssertionError, match=r"status: expected 'paused', is 'running'"):
        RUN.then_state(status="paused", edges=0)
    with pytest.raises(AssertionError, match=r"task a differs:\n    epoch: expected 7, is 1"):
        RUN.then_task("a", epoch=7)


def test_time_stands_still_unless_it_is_moved_and_never_goes_back() -> None:
    later = RUN.after(500).when(PauseRun())
    assert later.now_ms == 500
    assert later.when(ResumeRun(), now_ms=100).now_ms == 500
    assert later.when(ResumeRun(), now_ms=900).now_ms == 900


def test_a_timer_cannot_fire_where_there_is_no_deadline() -> None:
    with pytest.raises(AssertionError, match="no deadline of kind lease"):
        RUN.fires("lease", "a")
    with pytest.raises(AssertionError, match="no review"):
        RUN.judges("a", "pass")


def test_a_candidate_may_be_any_json_value_or_bytes() -> None:
    assert candidate({"b": 1, "a": 2}).artifacts[0].inline == b'{"a":2,"b":1}'
    assert candidate(b"\xff").artifacts[0].media_type == "application/octet-stream"


def test_what_a_person_asks_has_short_forms() -> None:
    RUN.fails("a", failure(terminal=True)).retries("a", "mended").then(
        like(TaskRetried, task="a", note="mended"), RunReopened, AttemptOpened
    )
    RUN.supersedes("a", task("b"), expected_graph_revision=1).then_task("b", status="ready", root=True)
    RUN.cancels("a", "no").then(AttemptClosed, like(TaskCancelled, reason="no"), RunFailed)
    RUN.amends(verifiers={"late": pin("decomposition", assurance="formal", version="7")}, max_depth=3).then(RunAmended)
    RUN.submits("a", blocked()).resolves("a", "done").then(like(TaskUnblocked, note="done"), RunReopened, AttemptOpened)


def test_a_condition_and_limits_stand_in_a_task() -> None:
    limits = TaskLimits(tokens=5, cost="0.1")
    spec = task("b", depends_on=("a",), when=(when("a", "/n", 1, 2, op="not_in"),), limits=limits, inputs=[1])
    assert spec.when == (Condition("a", "/n", (msgspec.Raw(b"1"), msgspec.Raw(b"2")), "not_in"),)
    assert (spec.limits, bytes(spec.inputs)) == (limits, b"[1]")
    assert bytes(decompose(spec, composition_contract={"k": 1}).composition_contract) == b'{"k":1}'


def test_what_was_used_is_reported_with_whatever_ends_an_attempt() -> None:
    used = Usage(7, "0.5")
    staged = RUN.submits("a", candidate(1), usage=used).then_state(spent=used)
    staged.judges("a", "pass", usage=used).then_state(spent=Usage(14, "1"))
    RUN.fails("a", usage=used).then_state(spent=used)
    RUN.releases("a", usage=used).then_state(spent=used)


def test_the_wall_time_fires_without_a_task() -> None:
    timed = given().when(start(task("a"), limits=Limits(max_wall_ms=1_000)), now_ms=500)
    assert timed.fires("wall").now_ms == 1_500
    with pytest.raises(AssertionError, match="no limit"):
        RUN.fires("wall")


def test_roots_are_what_nobody_waits_for() -> None:
    given().when(start(task("a"), task("b", depends_on=("a",)))).then(
        like(RunStarted, roots=("b",)), TasksAdded, AttemptOpened
    )
