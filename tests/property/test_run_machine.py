"""Any order of commands, right ones, nearly right ones, repeated ones and nonsense: what holds after each of them.

Commands go through the scheduler's own `handle`, so a command that breaks a decider fails the test.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeVar

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dagbok.events.body import decode_body
from dagbok.events.rule import follow
from dagbok.events.run import commands as c
from dagbok.events.run.events import AttemptUnserved, CommandRefused, CommandRepeated, Event, LeasesRenewed
from dagbok.events.run.values import AttemptKind, Claim, FailurePolicy, OutcomeData, VerdictWord
from dagbok.projections.partition import PartitionState, apply
from dagbok.projections.task_graph.state import CLOSED_RUN, FINAL_TASK, RunState, TaskNode
from dagbok.testing import act, blocked, candidate, decompose, failure, start
from tests.property.run_graphs import LIMITS, VERIFIERS, graphs
from tests.property.run_recount import nothing_is_forgotten, recount
from tests.property.run_watch import Watch
from tests.support.logbuilder import LogBuilder
from tests.support.scale import scale
from tests.support.strategies import any_command, nearly

VERDICTS: tuple[VerdictWord, ...] = (*("pass",) * 6, "fail", "inconclusive", "error")
POLICIES: tuple[FailurePolicy, ...] = ("continue_independent", "continue_independent", "fail_fast")
T = TypeVar("T")


class RunMachine(RuleBasedStateMachine):
    """One run after the other, and everybody who has something to say about it."""

    @initialize(data=st.data(), policy=st.sampled_from(POLICIES))
    def the_first_run_begins(self, data: st.DataObject, policy: FailurePolicy) -> None:
        self.log = LogBuilder()
        self.watches: dict[str, Watch] = {}
        self.finals: dict[tuple[str, str], bytes] = {}
        self.accepted: set[bytes] = set()
        self.proposals = self.gone = 0
        self._begin(data, policy)

    @precondition(lambda self: self.run_state.status in CLOSED_RUN)
    @rule(data=st.data(), policy=st.sampled_from(POLICIES))
    def the_next_run_begins(self, data: st.DataObject, policy: FailurePolicy) -> None:
        self._begin(data, policy)

    def _begin(self, data: st.DataObject, policy: FailurePolicy) -> None:
        self.name = f"r{len(self.watches)}"
        self.watches[f"run:{self.name}"] = Watch()
        specs = data.draw(graphs("t"))
        roots = {spec.id for spec in specs[-1:]} | set(data.draw(st.sets(st.sampled_from([s.id for s in specs]))))
        command = start(*specs, roots=tuple(sorted(roots)), verifiers=VERIFIERS, failure_policy=policy, limits=LIMITS)
        pinned = msgspec.structs.replace(command.pinned, max_depth=2, max_decompositions=2)
        self._send(msgspec.structs.replace(command, pinned=pinned))

    @property
    def run_state(self) -> RunState:
        return self.log.run(self.name)

    def active(self, kind: AttemptKind | None = None) -> list[TaskNode]:
        """The tasks with an attempt, of one kind or of any."""
        nodes = [self.run_state.tasks[id] for id in self.run_state.active]
        return [node for node in nodes if node.attempt is not None and kind in (None, node.attempt.kind)]

    def _send(self, command: c.RunCommand) -> None:
        self._took(self.log.send(self.name, command))

    def _took(self, events: Sequence[Event]) -> None:
        stream = self.log.records[-1].key
        if stream:
            self.watches[stream].seen(events)
        if not isinstance(events[0], CommandRefused | CommandRepeated):
            self.accepted.add(self.log.commands[-1].value)

    def _claim(self, node: TaskNode, data: st.DataObject) -> Claim:
        held = None if node.attempt is None else node.attempt.claim
        return held or self._new_claim(data)

    def _new_claim(self, data: st.DataObject) -> Claim:
        """A claim of a process that is alive: one that is gone says nothing any more, and none has its name again."""
        return Claim(self._process(data), data.draw(st.integers(1, 2)), "n1")

    def _process(self, data: st.DataObject) -> str:
        return f"p{data.draw(st.integers(1, 2))}-{self.gone}"

    # Workers and verifiers.

    @precondition(lambda self: self.active())
    @rule(data=st.data())
    def an_attempt_is_claimed(self, data: st.DataObject) -> None:
        self._send(act.start_attempt(self.run_state, _one(data, self.active()).id, claim=self._new_claim(data)))

    @precondition(lambda self: self.active("work"))
    @rule(data=st.data())
    def a_worker_returns(self, data: st.DataObject) -> None:
        self._send(self._outcome(data, _one(data, self.active("work"))))

    @precondition(lambda self: self.active("work"))
    @rule(data=st.data())
    def another_worker_returns(self, data: st.DataObject) -> None:
        self._send(self._outcome(data, _one(data, self.active("work"))))

    @precondition(lambda self: self.active("verify"))
    @rule(data=st.data())
    def a_verifier_judges(self, data: st.DataObject) -> None:
        self._send(self._verdict(data, _one(data, self.active("verify"))))

    @precondition(lambda self: self.active("verify"))
    @rule(data=st.data())
    def another_verifier_judges(self, data: st.DataObject) -> None:
        self._send(self._verdict(data, _one(data, self.active("verify"))))

    @precondition(lambda self: self.active())
    @rule(data=st.data())
    def an_answer_is_nearly_right(self, data: st.DataObject) -> None:
        node = _one(data, self.active())
        review = node.attempt is not None and node.attempt.kind == "verify"
        self._send(data.draw(nearly(self._verdict(data, node) if review else self._outcome(data, node))))

    def _verdict(self, data: st.DataObject, node: TaskNode) -> c.RunCommand:
        return act.submit_verdict(self.run_state, node.id, _one(data, VERDICTS), claim=self._claim(node, data))

    def _outcome(self, data: st.DataObject, node: TaskNode) -> c.RunCommand:
        kind = _one(data, ("candidate", "candidate", "decompose", "decompose", "blocked"))
        outcome: OutcomeData = blocked()
        if kind == "candidate":
            outcome = candidate(data.draw(st.integers(0, 3)))
        elif kind == "decompose":
            outcome = self._proposal(data, node)
        return act.submit_outcome(self.run_state, node.id, outcome, claim=self._claim(node, data))

    def _proposal(self, data: st.DataObject, node: TaskNode) -> OutcomeData:
        self.proposals += 1
        tasks = self.run_state.tasks
        safe = [id for id, other in tasks.items() if id != node.id and node.id not in other.deps]
        known = tuple(tasks) if data.draw(st.booleans()) else tuple(safe)
        specs = data.draw(graphs(f"c{self.proposals}-", known))
        reuse = tuple(data.draw(st.lists(st.sampled_from(known), max_size=1))) if known else ()
        expected = _one(data, (None, None, self.run_state.graph_revision, 1))
        return decompose(*specs, reuse=reuse, expected_graph_revision=expected)

    @precondition(lambda self: self.active())
    @rule(data=st.data(), terminal=st.sampled_from((False, False, False, True)))
    def an_attempt_fails(self, data: st.DataObject, terminal: bool) -> None:
        node = _one(data, self.active())
        said = failure(terminal=terminal)
        self._send(act.fail_attempt(self.run_state, node.id, said, claim=self._claim(node, data)))

    @precondition(lambda self: self.active())
    @rule(data=st.data())
    def a_process_has_something_else_to_say(self, data: st.DataObject) -> None:
        node, process = _one(data, self.active()), self._process(data)
        said = (
            act.release_attempt(self.run_state, node.id, claim=self._claim(node, data)),
            c.RejectAttempt(node.id, node.epoch, process),
            c.ReportGone(process),
        )
        command = _one(data, said)
        self.gone += isinstance(command, c.ReportGone)
        self._send(command)

    @precondition(lambda self: any(node.attempt.claim for node in self.active()))
    @rule()
    def all_leases_are_renewed(self) -> None:
        held = [(node.id, at) for node in self.active() if (at := node.attempt) is not None]
        self._send(c.RenewLeases(tuple([c.Renewal(id, at.epoch, at.claim) for id, at in held if at.claim])))

    # Time and operators.

    @precondition(lambda self: self.timers())
    @rule(data=st.data(), early_ms=st.sampled_from((0, 0, 1)))
    def a_timer_fires(self, data: st.DataObject, early_ms: int) -> None:
        kind, node = _one(data, self.timers())
        self.log.now_ms = max(self.log.now_ms, act.deadline_ms(self.run_state, kind, node.id) - early_ms)
        self._send(act.fire_timer(self.run_state, kind, node.id))

    def timers(self) -> list[tuple[Literal["lease", "timeout", "backoff"], TaskNode]]:
        """The deadlines of the run."""
        found: list[tuple[Literal["lease", "timeout", "backoff"], TaskNode]] = [
            ("backoff", node) for node in self.run_state.tasks.values() if node.status == "backoff"
        ]
        for node in self.active():
            if node.attempt is not None and node.attempt.claim is not None:
                found.append(("lease", node))
                if node.attempt.timeout_at_ms is not None:
                    found.append(("timeout", node))
        return found

    @rule(data=st.data())
    def an_operator_acts(self, data: st.DataObject) -> None:
        run = self.run_state
        raised = msgspec.structs.replace(run.limits, max_open=min(run.limits.max_open + 1, 5))
        said: list[c.RunCommand] = [
            c.SetLimits(raised),
            c.SetLimits(LIMITS),
            c.ResumeRun() if run.status == "paused" else c.PauseRun(),
        ]
        said += [c.ResumeRun()] * 2 * (run.status == "paused")
        said += [c.ResolveBlock(id, note) for id in run.blocked for note in ("", "done")]
        said += [c.CancelRun()] * (len(self.log.commands) > 30)
        self._send(_one(data, said))

    # What should change nothing.

    @precondition(lambda self: self.log.commands)
    @rule(data=st.data())
    def a_command_comes_again(self, data: st.DataObject) -> None:
        """Whatever it was and whatever happened since: it has no second effect. (A refused one may have its first.)

        Only an old renewal that comes behind a younger one holds a lease a little longer, and an old rejection delays a
        dispatch: of those two, only the last of each process is remembered.
        """
        value = _one(data, self.log.commands).value
        had_its_effect, before = value in self.accepted, self._image()
        events = self.log.deliver(value)
        self._took(events)
        if had_its_effect:
            assert self._image() == before
            assert isinstance(events[0], CommandRepeated | CommandRefused | LeasesRenewed | AttemptUnserved)

    def _image(self) -> bytes:
        """All runs, without what the repeated command may change: see above. Every answer moves the stream's head."""
        runs = msgspec.json.decode(msgspec.json.encode(list(self.log.state.runs.values())), type=list[RunState])
        for run in runs:
            run.stream_seq, run.stream_head = 0, ""
            for node in run.tasks.values():
                if node.attempt is not None:
                    node.attempt.lease_until_ms = node.attempt.unserved = 0
                    node.attempt.renewed_by = ("", 0)
                    node.attempt.rejected_by.clear()
        return msgspec.json.encode(runs)

    @rule(command=any_command)
    def nonsense_comes(self, command: c.RunCommand) -> None:
        if not isinstance(command, c.CancelRun):
            self._send(command)

    @rule()
    def a_snapshot_is_taken_and_read(self) -> None:
        """From here on everything is decided on the state as it comes back from a snapshot."""
        encoded = msgspec.json.encode(self.log.state)
        self.log.state = msgspec.json.decode(encoded, type=PartitionState)
        assert msgspec.json.encode(self.log.state) == encoded

    # What holds after every step.

    @invariant()
    def indexes_are_true_and_no_task_is_forgotten(self) -> None:
        recount(self.run_state)
        nothing_is_forgotten(self.run_state)

    @invariant()
    def what_is_final_stays_as_it_is(self) -> None:
        for stream, run in self.log.state.runs.items():
            for node in run.tasks.values():
                if node.status in FINAL_TASK:
                    kept = (node.status, node.published, node.outputs, node.epoch, node.failures)
                    encoded = msgspec.json.encode(kept)
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


def _one(data: st.DataObject, options: Sequence[T]) -> T:
    chosen: Any = data.draw(st.sampled_from(options))
    return chosen  # type: ignore[no-any-return]


TestRun = RunMachine.TestCase
TestRun.settings = settings(max_examples=scale(40, 2_000), stateful_step_count=60, deadline=None)
