"""Every command meets every state of a run and of a task: what it does there, or the code that refuses it.

The tables say for each state whether a command is `done`, a `repeat`, or refused, and with which code. What it does in
detail is told by the other specifications of this folder.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from dagbok.agents.scheduler.decide import Repeated
from dagbok.events.codes import Code
from dagbok.events.errors import Refused
from dagbok.events.run import commands as c
from dagbok.events.run.events import AttemptOpened, AttemptStarted
from dagbok.events.run.values import Limits, Report
from dagbok.projections.task_graph.state import CLOSED_RUN, FINAL_TASK, RunState
from dagbok.testing import CLAIM, OTHER_CLAIM, Scenario, act, candidate, failure, start, task
from tests.spec.standings import LONG_AFTER_MS, RUN, TASK, A

DONE, REPEAT = "done", "repeat"
STALE, CLAIMED, REJECTED = Code.STALE_ATTEMPT, Code.ATTEMPT_CLAIMED, Code.LEASE_REJECTED
CONFLICT, MISMATCH, CLOSED, ABSENT = Code.VERSION_CONFLICT, Code.CONFIG_MISMATCH, Code.RUN_CLOSED, Code.NOT_FOUND

# one row a command: absent, running, paused, blocked, succeeded, failed, cancelled
CLIENTS: Final[dict[str, tuple[c.RunCommand, tuple[str, ...]]]] = {
    "the same start": (start(A), (DONE, REPEAT, REPEAT, REPEAT, REPEAT, REPEAT, REPEAT)),
    "another start": (start(task("b")), (DONE, MISMATCH, MISMATCH, MISMATCH, MISMATCH, MISMATCH, MISMATCH)),
    "pause": (c.PauseRun(), (ABSENT, DONE, CONFLICT, DONE, CLOSED, CLOSED, CLOSED)),
    "resume": (c.ResumeRun(), (ABSENT, CONFLICT, DONE, CONFLICT, CLOSED, CLOSED, CLOSED)),
    "cancel": (c.CancelRun(), (ABSENT, DONE, DONE, DONE, CLOSED, CLOSED, CLOSED)),
    "limits": (c.SetLimits(Limits(max_open=2_000)), (ABSENT, DONE, DONE, DONE, CLOSED, DONE, CLOSED)),
    "amend": (c.AmendRun(max_depth=9), (ABSENT, DONE, DONE, DONE, CLOSED, DONE, CLOSED)),
    "resolve": (c.ResolveBlock("a"), (ABSENT, CONFLICT, CONFLICT, DONE, CLOSED, CLOSED, CLOSED)),
    "retry": (c.RetryTask("a"), (ABSENT, CONFLICT, CONFLICT, CONFLICT, CLOSED, DONE, CLOSED)),
    "supersede": (c.SupersedeTask("a", task("b")), (ABSENT, DONE, DONE, DONE, CLOSED, DONE, CLOSED)),
    "cancel task": (c.CancelTask("a"), (ABSENT, DONE, DONE, DONE, CLOSED, CLOSED, CLOSED)),
    "wall timer": (c.FireTimer("wall", "", 0, 0), (ABSENT, STALE, STALE, STALE, CLOSED, CLOSED, CLOSED)),
}

# one row a command: waiting · ready, the run is full · open · running · review open · review running · backoff ·
# review in backoff · blocked · verified · failed · skipped · cancelled · superseded
REPAIRS: Final[dict[str, tuple[c.RunCommand, tuple[str, ...]]]] = {
    "resolve": (c.ResolveBlock("a"), (*[CONFLICT] * 8, DONE, *[CONFLICT] * 5)),
    "retry": (c.RetryTask("a"), (*[CONFLICT] * 10, DONE, *[CONFLICT] * 3)),
    "supersede": (
        c.SupersedeTask("a", task("new")),
        (*[DONE] * 9, CONFLICT, DONE, CONFLICT, DONE, CONFLICT),
    ),
    "cancel task": (c.CancelTask("a"), (*[DONE] * 9, *[CONFLICT] * 5)),
}


def _report(run: RunState) -> Report:
    if run.tasks["a"].staged is not None and run.tasks["a"].attempt is not None:
        return act.report(run, "a", "pass")
    return Report("candidate", "pass", "check", "1", "d1", "executable_checks", "", ())


def _timer(kind: str) -> Callable[[RunState], c.RunCommand]:
    return lambda run: c.FireTimer(kind, "a", run.tasks["a"].epoch, 0)  # type: ignore[arg-type]


def _renew(run: RunState) -> c.RunCommand:
    return c.RenewLeases((c.Renewal("a", run.tasks["a"].epoch, CLAIM),))


# one row a command, in the same order
ATTEMPTS: Final[dict[str, tuple[Callable[[RunState], c.RunCommand], tuple[str, ...]]]] = {
    "start": (
        lambda run: act.start_attempt(run, "a"),
        (STALE, STALE, DONE, REPEAT, DONE, REPEAT, STALE, STALE, STALE, STALE, STALE, STALE, STALE, STALE),
    ),
    "start by another": (
        lambda run: act.start_attempt(run, "a", claim=OTHER_CLAIM),
        (STALE, STALE, DONE, CLAIMED, DONE, CLAIMED, STALE, STALE, STALE, STALE, STALE, STALE, STALE, STALE),
    ),
    "renew": (
        _renew,
        (
            REJECTED,
            REJECTED,
            REJECTED,
            DONE,
            REJECTED,
            DONE,
            REJECTED,
            REJECTED,
            REJECTED,
            REJECTED,
            REJECTED,
            REJECTED,
            REJECTED,
            REJECTED,
        ),
    ),
    "outcome": (
        lambda run: act.submit_outcome(run, "a", candidate(2), claim=CLAIM),
        (STALE, STALE, DONE, DONE, STALE, STALE, STALE, STALE, STALE, STALE, STALE, STALE, STALE, STALE),
    ),
    "outcome by another": (
        lambda run: act.submit_outcome(run, "a", candidate(2), claim=OTHER_CLAIM),
        (STALE, STALE, DONE, REJECTED, STALE, STALE, STALE, STALE, STALE, STALE, STALE, STALE, STALE, STALE),
    ),
    "verdict": (
        lambda run: c.SubmitVerdict("a", run.tasks["a"].epoch, CLAIM, _report(run)),
        (STALE, STALE, STALE, STALE, DONE, DONE, STALE, STALE, STALE, STALE, STALE, STALE, STALE, STALE),
    ),
    "verdict by another": (
        lambda run: c.SubmitVerdict("a", run.tasks["a"].epoch, OTHER_CLAIM, _report(run)),
        (STALE, STALE, STALE, STALE, DONE, REJECTED, STALE, STALE, STALE, STALE, STALE, STALE, STALE, STALE),
    ),
    "failure": (
        lambda run: act.fail_attempt(run, "a", failure(), claim=CLAIM),
        (STALE, STALE, DONE, DONE, DONE, DONE, STALE, STALE, STALE, STALE, STALE, STALE, STALE, STALE),
    ),
    "failure by another": (
        lambda run: act.fail_attempt(run, "a", failure(), claim=OTHER_CLAIM),
        (STALE, STALE, DONE, REJECTED, DONE, REJECTED, STALE, STALE, STALE, STALE, STALE, STALE, STALE, STALE),
    ),
    "session": (
        lambda run: act.suspend_session(run, "a", b"x", claim=CLAIM),
        (STALE, STALE, REJECTED, DONE, STALE, STALE, STALE, STALE, STALE, STALE, STALE, STALE, STALE, STALE),
    ),
    "session by another": (
        lambda run: act.suspend_session(run, "a", b"x", claim=OTHER_CLAIM),
        (STALE, STALE, REJECTED, REJECTED, STALE, STALE, STALE, STALE, STALE, STALE, STALE, STALE, STALE, STALE),
    ),
    "release": (
        lambda run: act.release_attempt(run, "a", claim=CLAIM),
        (STALE, STALE, DONE, DONE, DONE, DONE, STALE, STALE, STALE, STALE, STALE, STALE, STALE, STALE),
    ),
    "release by another": (
        lambda run: act.release_attempt(run, "a", claim=OTHER_CLAIM),
        (STALE, STALE, DONE, REJECTED, DONE, REJECTED, STALE, STALE, STALE, STALE, STALE, STALE, STALE, STALE),
    ),
    "reject": (
        lambda run: c.RejectAttempt("a", run.tasks["a"].epoch, "process-9"),
        (STALE, STALE, DONE, CLAIMED, DONE, CLAIMED, STALE, STALE, STALE, STALE, STALE, STALE, STALE, STALE),
    ),
    "lease timer": (
        _timer("lease"),
        (STALE, STALE, STALE, DONE, STALE, DONE, STALE, STALE, STALE, STALE, STALE, STALE, STALE, STALE),
    ),
    "timeout timer": (
        _timer("timeout"),
        (STALE, STALE, STALE, DONE, STALE, STALE, STALE, STALE, STALE, STALE, STALE, STALE, STALE, STALE),
    ),
    "backoff timer": (
        _timer("backoff"),
        (STALE, STALE, STALE, STALE, STALE, STALE, DONE, DONE, STALE, STALE, STALE, STALE, STALE, STALE),
    ),
    "process gone": (
        lambda run: c.ReportGone(CLAIM.process),
        (STALE, STALE, STALE, DONE, STALE, DONE, STALE, STALE, STALE, STALE, STALE, STALE, STALE, STALE),
    ),
}
TIMERS: Final = ("lease timer", "timeout timer", "backoff timer")


CLIENT_CELLS = [
    (command, state, led_to) for command, (_, row) in CLIENTS.items() for state, led_to in zip(RUN, row, strict=True)
]
REPAIR_CELLS = [
    (command, state, led_to) for command, (_, row) in REPAIRS.items() for state, led_to in zip(TASK, row, strict=True)
]
ATTEMPT_CELLS = [
    (command, state, led_to) for command, (_, row) in ATTEMPTS.items() for state, led_to in zip(TASK, row, strict=True)
]


def _at_its_time(scenario: Scenario, command: str) -> Scenario:
    return scenario.after(LONG_AFTER_MS) if command in TIMERS else scenario


def _led_to(scenario: Scenario) -> str:
    if isinstance(scenario.answer, Refused):
        return scenario.answer.code
    return REPEAT if isinstance(scenario.answer, Repeated) else DONE


@pytest.mark.parametrize(("command", "state", "led_to"), CLIENT_CELLS)
def test_a_client_command_meets_a_run(command: str, state: str, led_to: str) -> None:
    assert _led_to(RUN[state].when(CLIENTS[command][0])) == led_to


@pytest.mark.parametrize(("command", "state", "led_to"), REPAIR_CELLS)
@pytest.mark.parametrize("paused", [False, True])
def test_a_repair_meets_a_task(command: str, state: str, led_to: str, paused: bool) -> None:
    standing = TASK[state].when(c.PauseRun()) if paused else TASK[state]
    assert _led_to(standing.when(REPAIRS[command][0])) == led_to


@pytest.mark.parametrize("command", REPAIRS)
def test_a_repair_of_a_task_that_is_not_there_is_not_found(command: str) -> None:
    built = REPAIRS[command][0]
    RUN["running"].when(type(built)(**{**_fields(built), "task": "nobody"})).then_refused(Code.NOT_FOUND)


@pytest.mark.parametrize(("command", "state"), [(one, state) for one, state, led_to in REPAIR_CELLS if led_to == DONE])
def test_after_a_repair_no_task_that_is_settled_has_an_attempt(command: str, state: str) -> None:
    repaired = TASK[state].when(REPAIRS[command][0])
    settled = [node for node in repaired.state.tasks.values() if node.status in FINAL_TASK]
    assert not [node.id for node in settled if node.attempt is not None or node.staged is not None]
    assert not {node.id for node in settled} & {*repaired.state.active, *repaired.state.reviews}


@pytest.mark.parametrize(("command", "state", "led_to"), ATTEMPT_CELLS)
def test_a_command_about_an_attempt_meets_a_task(command: str, state: str, led_to: str) -> None:
    standing = _at_its_time(TASK[state], command)
    assert _led_to(standing.when(ATTEMPTS[command][0](standing.state))) == led_to


def test_the_tables_have_every_command() -> None:
    built = [command for command, _ in CLIENTS.values()]
    built += [build(TASK["running"].state) for build, _ in ATTEMPTS.values()]
    assert {type(command).__name__ for command in built} == set(c.RUN_COMMANDS)


def test_the_states_are_what_they_are_called() -> None:
    assert {name: scenario.state.status for name, scenario in RUN.items() if name != "absent"} == {
        name: name for name in RUN if name != "absent"
    }
    called = {
        "ready, the run is full": "ready",
        "open": "ready",
        "review open": "verifying",
        "review running": "verifying",
        "review in backoff": "backoff",
    }
    assert {name: scenario.task("a").status for name, scenario in TASK.items()} == {
        name: called.get(name, name) for name in TASK
    }


@pytest.mark.parametrize("command", ATTEMPTS)
@pytest.mark.parametrize("state", [name for name in RUN if name in CLOSED_RUN])
def test_a_closed_run_takes_nothing_about_attempts(command: str, state: str) -> None:
    standing = _at_its_time(RUN[state], command)
    expected = REJECTED if command == "renew" else CLOSED
    standing.when(ATTEMPTS[command][0](standing.state)).then_refused(Code(expected))


@pytest.mark.parametrize("command", [name for name in ATTEMPTS if name not in ("renew", "process gone")])
@pytest.mark.parametrize("state", ["absent", "running"])
def test_a_task_that_is_not_there_is_not_found(command: str, state: str) -> None:
    built = ATTEMPTS[command][0](TASK["running"].state)
    unknown = type(built)(**{**_fields(built), "task": "nobody"})
    RUN[state].after(LONG_AFTER_MS).when(unknown).then_refused(Code.NOT_FOUND)


@pytest.mark.parametrize("command", [name for name in ATTEMPTS if name not in ("renew", "process gone")])
@pytest.mark.parametrize("state", TASK)
@pytest.mark.parametrize("away", [-1, 1, 7])
def test_another_epoch_is_stale(command: str, state: str, away: int) -> None:
    """Epochs only grow, so an old one names an attempt that is closed, and a new one an attempt that is not there."""
    standing = _at_its_time(TASK[state], command)
    built = ATTEMPTS[command][0](standing.state)
    other = type(built)(**{**_fields(built), "epoch": standing.task("a").epoch + away})
    standing.when(other).then_refused(STALE)


@pytest.mark.parametrize(
    ("command", "state"),
    [(command, state) for command, state, led_to in ATTEMPT_CELLS if led_to == DONE],
)
def test_in_a_paused_run_what_runs_goes_on_but_nothing_opens_or_starts(command: str, state: str) -> None:
    standing = _at_its_time(TASK[state].when(c.PauseRun()), command)
    led_to = standing.when(ATTEMPTS[command][0](standing.state))
    if command in ("start", "start by another", "backoff timer"):
        led_to.then_refused(Code.RUN_PAUSED)
    else:
        assert not any(isinstance(event, AttemptOpened | AttemptStarted) for event in led_to.events)


@pytest.mark.parametrize(
    ("command", "state"),
    [(command, state) for command, state, led_to in ATTEMPT_CELLS if led_to == DONE],
)
def test_the_same_command_again_has_no_second_effect(command: str, state: str) -> None:
    """A sender without an answer sends the command again: it is told that it was decided, or that it is too late."""
    standing = _at_its_time(TASK[state], command)
    built = ATTEMPTS[command][0](standing.state)
    again = standing.when(built, id="once").when(built, id="once")
    if command in ("backoff timer", "process gone"):
        again.then_refused(STALE)
    else:
        again.then_repeated(of=standing.next_offset)


def _fields(command: c.RunCommand) -> dict[str, object]:
    return {name: getattr(command, name) for name in command.__struct_fields__}
