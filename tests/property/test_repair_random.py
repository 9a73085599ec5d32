"""Random histories of runs that branch, are repaired, amended and short of budget: after every command all indexes are
true, the sums are those of the events, nothing is forgotten, and what is settled stays settled."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from random import Random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from dagbok.agents.scheduler.decide import By, Repeated, decide
from dagbok.agents.scheduler.execute import execute
from dagbok.events.body import decode_body, encode_body
from dagbok.events.errors import Refused
from dagbok.events.run import events as e
from dagbok.events.run.commands import RunCommand
from dagbok.projections.task_graph.evolve import evolve
from dagbok.projections.task_graph.state import FINAL_TASK, At, RunState
from tests.property.repair_moves import move, started
from tests.property.run_recount import Accounts, nothing_is_forgotten, recount
from tests.support.scale import scale

STEPS = 80
Numbered = list[tuple[int, int, list[e.Event]]]


class _History:
    """A run, and what was decided on it."""

    def __init__(self) -> None:
        self.run = RunState(run="run", tenant="tenant", project="project")
        self.accounts = Accounts()
        self.now_ms = 0
        self.commits: Numbered = []
        self.refused = 0

    def send(self, command: RunCommand, at_ms: int) -> None:
        """Decide on the command, and look at everything that has to be true then."""
        self.now_ms = max(self.now_ms, at_ms)
        by = By(f"command-{len(self.commits) + self.refused}", "user:test", self.now_ms)
        settled = {node.id: node.status for node in self.run.tasks.values() if node.status in FINAL_TASK}
        before = msgspec.json.encode(self.run)
        try:
            events = execute(self.run, command, by, 0, len(self.commits))
        except (Refused, Repeated):
            self.refused += 1
            assert msgspec.json.encode(self.run) == before, "a refusal changes nothing"
            return
        assert events, f"{command} was accepted and did nothing"
        self.commits.append((self.now_ms, len(self.commits) + self.refused, events))
        self.accounts.seen(events)
        recount(self.run)
        self.accounts.agree(self.run)
        nothing_is_forgotten(self.run, self.now_ms)
        self._settled_stays(settled)
        _is_in_order(events)

    def _settled_stays(self, settled: Mapping[str, str]) -> None:
        """Only a cancelled task may still be replaced."""
        for id, status in settled.items():
            now = self.run.tasks[id].status
            assert now == status or (status, now) == ("cancelled", "superseded")

    def folded_anew(self) -> RunState:
        """The state from the events as they lie in the log."""
        run = RunState(run="run", tenant="tenant", project="project")
        for offset, (now_ms, number, events) in enumerate(self.commits):
            stored, codec, raw_size = encode_body(events)
            for index, event in enumerate(decode_body(stored, codec, raw_size)):
                evolve(run, event, At(0, offset, index, now_ms, f"command-{number}"))
        return run


def _is_in_order(events: list[e.Event]) -> None:
    """What ends a run ends its commit, and nothing opens behind what stops it."""
    ends = [
        place for place, event in enumerate(events) if isinstance(event, e.RunSucceeded | e.RunFailed | e.RunBlocked)
    ]
    assert ends in ([], [len(events) - 1])
    reopened = [place for place, event in enumerate(events) if isinstance(event, e.RunReopened)]
    assert len(reopened) <= 1
    opened = [place for place, event in enumerate(events) if isinstance(event, e.AttemptOpened)]
    assert not (opened and ends) or not isinstance(events[-1], e.RunBlocked)
    rests = {event.task for event in events if isinstance(event, e.TaskBackedOff)}
    assert not rests & {event.task for event in events if isinstance(event, e.AttemptOpened)}, "it is to rest first"
    assert not any(isinstance(event, e.RunFailed) and event.code == "internal_error" for event in events)


def _history(seed: int, steps: int) -> _History:
    """So many commands, each checked as it is decided. Fewer steps are the beginning of the same history."""
    random, history, numbers = Random(seed), _History(), count()
    history.send(started(random), 0)
    for _ in range(steps):
        if history.run.status in ("succeeded", "cancelled") and random.random() < 0.5:
            break
        command, at_ms = move(random, history.run, lambda: f"n{next(numbers)}")
        history.send(command, at_ms)
    return history


seeds, steps = st.integers(0, 2**32), st.integers(0, STEPS)


@settings(max_examples=scale(200, 5_000), deadline=None)
@given(seeds, steps)
def test_every_command_leaves_a_state_that_is_true(seed: int, steps: int) -> None:
    history = _history(seed, steps)
    assert msgspec.json.encode(history.folded_anew()) == msgspec.json.encode(history.run)


@settings(max_examples=scale(50, 1_000), deadline=None)
@given(seeds, steps, st.integers(0, 1_000))
def test_a_decider_reads_nothing_but_its_arguments(seed: int, steps: int, next_seed: int) -> None:
    """The first event, asked for and thrown away, changes nothing; a second decision on equal states is equal."""
    history, numbers = _history(seed, steps), count()
    copy = msgspec.json.decode(msgspec.json.encode(history.run), type=RunState)
    command, at_ms = move(Random(next_seed), history.run, lambda: f"fresh{next(numbers)}")
    by = By("the-command", "user:test", max(history.now_ms, at_ms))
    try:
        next(decide(history.run, command, by), None)
        assert msgspec.json.encode(copy) == msgspec.json.encode(history.run)
        assert execute(copy, command, by, 0, 99) == execute(history.run, command, by, 0, 99)
    except (Refused, Repeated):
        pass
    assert msgspec.json.encode(copy) == msgspec.json.encode(history.run)
