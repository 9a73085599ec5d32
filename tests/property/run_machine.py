"""One run after the other on one log: how commands are sent, and what holds after each of them.

`run_agents.py` adds what workers and verifiers say, `run_operators.py` people and clocks, `test_run_machine.py` what
should change nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dagbok.events.body import decode_body
from dagbok.events.rule import follow
from dagbok.events.run import commands as c
from dagbok.events.run.events import CommandRefused, CommandRepeated, Event
from dagbok.events.run.values import AttemptKind, FailurePolicy
from dagbok.projections.partition import PartitionState, apply
from dagbok.projections.task_graph.state import CLOSED_RUN, FINAL_TASK, RunState, TaskNode
from dagbok.testing import start
from tests.property.run_graphs import VERIFIERS, branches, graph, limits
from tests.property.run_model_check import Checked
from tests.property.run_recount import nothing_is_forgotten, recount
from tests.property.run_seen import Seen
from tests.property.run_watch import Watch
from tests.support.logbuilder import LogBuilder

POLICIES: tuple[FailurePolicy, ...] = ("continue_independent", "continue_independent", "fail_fast")
randoms = st.randoms(use_true_random=True)
"""Fair choices inside a step, from a seed that is drawn: hypothesis chooses the steps, and takes away those that do not
matter."""


class Runs(RuleBasedStateMachine):
    """The log, the runs on it, and whoever watches them: see `Watch` and `Checked`."""

    seen = Seen()

    @initialize(random=randoms)
    def the_first_run_begins(self, random: Random) -> None:
        self.log = LogBuilder()
        self.watches: dict[str, Watch] = {}
        self.models: dict[str, Checked] = {}
        self.sent: list[tuple[str, c.RunCommand]] = []
        self.finals: dict[tuple[str, str], bytes] = {}
        self.accepted: set[bytes] = set()
        self.names = self.gone = 0
        self._begin(random)

    @precondition(lambda self: self.run_state.status in CLOSED_RUN)
    @rule(random=randoms)
    def the_next_run_begins(self, random: Random) -> None:
        self._begin(random)

    def _begin(self, random: Random) -> None:
        self.name = f"r{len(self.watches)}"
        self.watches[f"run:{self.name}"] = Watch()
        specs = random.choice((graph(random, "t"), graph(random, "t"), branches(random)))
        roots = {specs[-1].id, *(spec.id for spec in specs if random.random() < 0.3)}
        command = start(
            *specs,
            roots=tuple(sorted(roots)),
            verifiers=VERIFIERS,
            failure_policy=random.choice(POLICIES),
            max_depth=2,
            max_decompositions=2,
            limits=limits(random),
        )
        events = self.log.send(self.name, command)
        self.sent.append((self.name, command))
        self.models[self.name] = Checked(command, events, self.log.now_ms)
        self.models[self.name].agrees(self.run_state)
        self._took(command, {}, events)

    @property
    def run_state(self) -> RunState:
        return self.log.run(self.name)

    def active(self, kind: AttemptKind | None = None) -> list[TaskNode]:
        """The tasks with an attempt, of one kind or of any."""
        nodes = [self.run_state.tasks[id] for id in self.run_state.active]
        return [node for node in nodes if node.attempt is not None and kind in (None, node.attempt.kind)]

    def _send(self, command: c.RunCommand, *, right: bool = True) -> None:
        before = self.seen.statuses(self.run_state)
        events = self.log.send(self.name, command)
        self.sent.append((self.name, command))
        self.models[self.name].answered(command, events, self.log.now_ms, right=right)
        self.models[self.name].agrees(self.run_state)
        self._took(command, before, events)

    def _took(self, command: c.RunCommand, before: dict[str, str], events: Sequence[Event]) -> None:
        stream = self.log.records[-1].key
        if stream:
            self.watches[stream].seen(events)
        if not isinstance(events[0], CommandRefused | CommandRepeated):
            self.accepted.add(self.log.commands[-1].value)
        self.seen.answered(command, before, events, self.run_state)

    @invariant()
    def indexes_are_true_and_no_task_is_forgotten(self) -> None:
        recount(self.run_state)
        nothing_is_forgotten(self.run_state)

    @invariant()
    def what_is_final_stays_as_it_is(self) -> None:
        for stream, run in self.log.state.runs.items():
            for node in run.tasks.values():
                if node.status in FINAL_TASK:
                    settled = node.status if node.status in ("verified", "skipped") else "gone"
                    encoded = msgspec.json.encode((settled, node.published, node.outputs, node.epoch, node.failures))
                    assert self.finals.setdefault((stream, node.id), encoded) == encoded

    @invariant()
    def what_is_published_was_judged(self) -> None:
        for stream, run in self.log.state.runs.items():
            verified = [node for node in run.tasks.values() if node.status == "verified"]
            published = {node.id: tuple(ref.sha256 for ref in node.published) for node in verified}
            assert published == self.watches[stream].verified
            assert not any(node.published for node in run.tasks.values() if node.id not in published)

    def teardown(self) -> None:
        """The whole log, folded from its bytes, gives this very state; decided anew, it gives these very bytes."""
        if not hasattr(self, "log"):
            return
        folded, again = PartitionState(0), LogBuilder()
        for command, record in zip(self.log.commands, self.log.records, strict=True):
            _, commit = follow(folded.position, 0, folded.position.next_offset, record.value)
            assert commit is not None
            apply(folded, commit, decode_body(commit.stored_body, commit.seal.codec, commit.seal.raw_size))
            again.now_ms = command.append_ms
            again.deliver(command.value)
        assert msgspec.json.encode(folded) == msgspec.json.encode(self.log.state)
        assert again.records == self.log.records
