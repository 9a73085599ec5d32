"""Commands of any content: a decider answers with events, a repeat or a refusal, and with nothing else."""

from __future__ import annotations

import msgspec
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from dagbok.agents.scheduler.decide import By, Repeated, decide
from dagbok.agents.scheduler.execute import execute
from dagbok.events.body import decode_body, encode_body
from dagbok.events.errors import Refused
from dagbok.events.run.commands import RunCommand, decode_run_command
from dagbok.projections.task_graph.state import RunState
from dagbok.testing import act, blocked, candidate, decompose, failure, start, task
from tests.property.run_graphs import LIMITS
from tests.spec.standings import RUN, TASK
from tests.support.scale import scale
from tests.support.strategies import any_command, nearly

STANDINGS = {**TASK, **{f"run {name}": scenario for name, scenario in RUN.items()}}
standings = st.sampled_from(sorted(STANDINGS))
examples = settings(max_examples=scale(300, 10_000), deadline=None)


@examples
@given(standings, any_command, st.integers(0, 10**7))
def test_any_command_is_decided_or_refused(standing: str, command: RunCommand, now_ms: int) -> None:
    _try(STANDINGS[standing].state, _as_sent(command), now_ms)


@examples
@given(standings, st.data())
def test_a_command_that_is_nearly_right_is_decided_or_refused(standing: str, data: st.DataObject) -> None:
    right = data.draw(st.sampled_from(_RIGHT))
    _try(STANDINGS[standing].state, _as_sent(data.draw(nearly(right))), 0)


def _try(run: RunState, command: RunCommand, now_ms: int) -> None:
    """A refusal leaves the state as it was; events can be written, read back, and give the same state."""
    before = msgspec.json.encode(run)
    folded_anew = msgspec.json.decode(before, type=RunState)
    by = By("the-command", "user:test", now_ms)
    try:
        events = execute(run, command, by, 0, 77)
    except (Refused, Repeated):
        assert msgspec.json.encode(run) == before
        return
    assert events
    stored, codec, raw_size = encode_body(events)
    assert decode_body(stored, codec, raw_size) == events
    assert execute(folded_anew, command, by, 0, 77) == events
    assert msgspec.json.encode(folded_anew) == msgspec.json.encode(run)


def _as_sent(command: RunCommand) -> RunCommand:
    """As it comes out of the log. What cannot be decoded never reaches a decider."""
    try:
        return decode_run_command(type(command).__name__, msgspec.json.encode(command))
    except (msgspec.MsgspecError, UnicodeError):
        reject()


def _right() -> list[RunCommand]:
    running, review = TASK["running"].state, TASK["review open"].state
    return [
        start(task("a"), task("b", depends_on=("a",)), limits=LIMITS),
        act.start_attempt(TASK["open"].state, "a"),
        act.submit_outcome(running, "a", candidate({"lines": 3}, outputs={"n": 1})),
        act.submit_outcome(running, "a", decompose(task("c"), task("d", depends_on=("c", "z")), reuse=("z",))),
        act.submit_outcome(running, "a", blocked()),
        act.fail_attempt(running, "a", failure()),
        act.release_attempt(running, "a"),
        act.fire_timer(running, "lease", "a"),
        act.submit_verdict(review, "a", "pass"),
        act.submit_verdict(review, "a", "fail"),
    ]


_RIGHT = _right()


@examples
@given(standings, any_command)
def test_a_decider_refuses_before_its_first_event_and_reads_nothing_but_its_arguments(
    standing: str, command: RunCommand
) -> None:
    """Asking for the first event only, and throwing it away, changes nothing."""
    run = STANDINGS[standing].state
    before = msgspec.json.encode(run)
    try:
        first = next(decide(run, _as_sent(command), By("the-command", "user:test", 0)))
    except (Refused, Repeated):
        first = None
    assert msgspec.json.encode(run) == before
    del first
