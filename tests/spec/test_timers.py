"""Deadlines of the confirmed state: fired when they have passed, moved by renewals, forgotten with what they belong
to."""

from __future__ import annotations

from itertools import pairwise

from dagbok.agents.scheduler.handle import handle
from dagbok.agents.scheduler.timers import AGAIN_MS, LONGEST_AGAIN_MS, SMALL, Timers
from dagbok.events.envelope import command_record, run_command
from dagbok.events.log.port import StoredRecord
from dagbok.events.run import commands as c
from dagbok.events.run.values import Limits
from dagbok.projections.partition import PartitionState
from dagbok.projections.task_graph.state import RunState
from dagbok.testing import CLAIM, act, candidate, failure, start, task
from tests.support.logbuilder import SENDER, START_MS

LEASE_MS, TIMEOUT_MS = 10_000, 25_000


class Deadlines:
    """A partition without an owner, one run, and its timers. Times are milliseconds since the start."""

    def __init__(self, *names: str) -> None:
        self.state, self.timers, self.commands, self.now_ms = PartitionState(0), Timers(), 0, 0
        tasks = [task(name, lease_ms=LEASE_MS, timeout_ms=TIMEOUT_MS) for name in names]
        self.tell(start(*tasks, limits=Limits(backoff_base_ms=1_000, backoff_max_ms=1_000)))

    @property
    def run(self) -> RunState:
        """The run."""
        return self.state.runs["run:r"]

    def tell(self, command: c.RunCommand) -> None:
        """Decide a command now; its commit is confirmed."""
        at_ms = START_MS + self.now_ms
        envelope = run_command(SENDER, "run:r", command, id=f"id-{self.commands}", now_ms=at_ms)
        record = StoredRecord(self.commands, at_ms, "", command_record(envelope).value)
        self.commands += 1
        self.timers.confirmed(self.state, handle(self.state, record, 1))

    def due(self, at_ms: int) -> list[tuple[str, str]]:
        """What fires now."""
        self.now_ms = at_ms
        return [(fire.kind, fire.task) for _, fire in self.timers.due(self.state, START_MS + at_ms)]

    def next_ms(self) -> int | None:
        """When to look again."""
        found = self.timers.next_ms()
        return None if found is None else found - START_MS


def test_an_open_attempt_has_no_deadline() -> None:
    assert Deadlines("a").next_ms() is None


def test_a_lease_fires_when_it_is_over_and_again_while_nobody_decides_it() -> None:
    deadlines = Deadlines("a")
    deadlines.tell(act.start_attempt(deadlines.run, "a"))
    assert deadlines.next_ms() == LEASE_MS
    assert deadlines.due(LEASE_MS - 1) == []
    assert deadlines.due(LEASE_MS) == [("lease", "a")]
    assert deadlines.due(LEASE_MS + 1) == []
    assert deadlines.due(LEASE_MS + AGAIN_MS) == [("lease", "a")]


def test_what_has_no_effect_fires_again_later_each_time_up_to_a_minute() -> None:
    deadlines = Deadlines("a")
    deadlines.tell(act.start_attempt(deadlines.run, "a"))
    times = []
    for at_ms in range(LEASE_MS, TIMEOUT_MS, 50):
        times += [at_ms] * len(deadlines.due(at_ms))
    assert [time - LEASE_MS for time in times] == [0, 500, 1_500, 3_500, 7_500]
    times = [at_ms for at_ms in range(10**6, 2 * 10**6, 500) if ("lease", "a") in deadlines.due(at_ms)]
    assert max(later - earlier for earlier, later in pairwise(times)) == LONGEST_AGAIN_MS


def test_deadlines_of_what_is_over_take_no_room() -> None:
    deadlines = Deadlines("long", *[f"t{number}" for number in range(999)])
    deadlines.tell(act.start_attempt(deadlines.run, "long"))
    for number in range(999):
        deadlines.tell(act.start_attempt(deadlines.run, f"t{number}"))
        deadlines.tell(act.submit_outcome(deadlines.run, f"t{number}", candidate({"x": 1})))
        assert len(deadlines.timers) <= SMALL + 1
    # Nothing that counts is thrown out.
    assert deadlines.due(LEASE_MS) == [("lease", "long")]
    assert deadlines.due(TIMEOUT_MS) == [("lease", "long"), ("timeout", "long")]


def test_a_renewal_moves_the_lease_and_the_timeout_stays() -> None:
    deadlines = Deadlines("a")
    deadlines.tell(act.start_attempt(deadlines.run, "a"))
    for now_ms in (8_000, 16_000, 24_000):
        assert deadlines.due(now_ms) == []
        deadlines.tell(c.RenewLeases((c.Renewal("a", 1, CLAIM),)))
    assert deadlines.due(TIMEOUT_MS) == [("timeout", "a")]


def test_a_closed_attempt_and_a_closed_run_have_no_deadlines() -> None:
    deadlines = Deadlines("a", "b")
    for name in "ab":
        deadlines.tell(act.start_attempt(deadlines.run, name))
    deadlines.tell(act.submit_outcome(deadlines.run, "a", candidate({"x": 1})))
    assert deadlines.due(LEASE_MS) == [("lease", "b")]
    deadlines.tell(c.CancelRun())
    assert deadlines.due(10 * TIMEOUT_MS) == []
    assert deadlines.next_ms() is None


def test_a_backoff_fires_when_it_is_over() -> None:
    deadlines = Deadlines("a")
    deadlines.tell(act.fail_attempt(deadlines.run, "a", failure("bad luck")))
    due_ms = deadlines.next_ms()
    assert due_ms is not None
    assert deadlines.due(due_ms - 1) == []
    assert deadlines.due(due_ms) == [("backoff", "a")]


def test_a_backoff_that_ends_in_a_pause_waits_and_resuming_opens_the_attempt() -> None:
    deadlines = Deadlines("a")
    deadlines.tell(act.fail_attempt(deadlines.run, "a", failure("bad luck")))
    due_ms = deadlines.next_ms()
    assert due_ms is not None
    deadlines.tell(c.PauseRun())
    assert deadlines.due(due_ms) == []
    deadlines.tell(c.ResumeRun())
    assert (deadlines.run.tasks["a"].status, deadlines.run.tasks["a"].epoch) == ("ready", 2)
    assert deadlines.due(due_ms + AGAIN_MS) == []


def test_timers_built_from_the_state_are_those_that_were_followed() -> None:
    deadlines = Deadlines("a", "b", "c")
    deadlines.tell(act.start_attempt(deadlines.run, "a"))
    deadlines.tell(act.fail_attempt(deadlines.run, "b", failure("bad luck")))
    rebuilt = Deadlines("a", "b", "c")
    rebuilt.state = deadlines.state
    rebuilt.timers.rebuild(deadlines.state)
    for at_ms in range(0, 2 * TIMEOUT_MS, 250):
        assert rebuilt.due(at_ms) == deadlines.due(at_ms)
