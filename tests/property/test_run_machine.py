"""Any order of commands, right ones, nearly right ones, repeated ones and nonsense: what holds after each of them.

Commands go through the scheduler's own `handle`, so a command that breaks a decider fails the test. Every answer is
compared with that of a second, naive description of the graph (`run_model.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import msgspec
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from dagbok.agents.scheduler.decide.proceed import judge_of
from dagbok.events.body import decode_body
from dagbok.events.rule import follow
from dagbok.events.run import commands as c
from dagbok.events.run.events import AttemptUnserved, CommandRefused, CommandRepeated, Event, LeasesRenewed
from dagbok.events.run.values import AttemptKind, Claim, FailurePolicy, OutcomeData, Spec, Usage, VerdictWord
from dagbok.projections.partition import PartitionState, apply
from dagbok.projections.task_graph.state import CLOSED_RUN, FINAL_TASK, RunState, TaskNode
from dagbok.testing import act, blocked, decompose, failure, pin, start
from tests.property.run_graphs import HIGHEST, KEYS, VERIFIERS, a_candidate, a_task, branches, graph, limits, raised
from tests.property.run_model_check import Checked
from tests.property.run_model_rules import judges_below
from tests.property.run_recount import nothing_is_forgotten, recount
from tests.property.run_seen import Seen
from tests.property.run_watch import Watch
from tests.support.logbuilder import LogBuilder
from tests.support.scale import scale
from tests.support.strategies import any_command, nearly

VERDICTS: tuple[VerdictWord, ...] = ("pass", "fail", "inconclusive", "error")
OUTCOMES = ("candidate", "candidate", "candidate", "blocked")
WELL = ("candidate", "candidate", "candidate", "decompose")
POLICIES: tuple[FailurePolicy, ...] = ("continue_independent", "continue_independent", "fail_fast")
USAGES = (*[Usage()] * 4, Usage(5, "0.25"), Usage(5, "0.25"), Usage(30, "2"))
randoms = st.randoms(use_true_random=True)
"""Fair choices inside a step, from a seed that is drawn: hypothesis chooses the steps, and takes away those that do not
matter."""


class RunMachine(RuleBasedStateMachine):
    """One run after the other, and everybody who has something to say about it."""

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

    def _claim(self, node: TaskNode, random: Random) -> Claim:
        held = None if node.attempt is None else node.attempt.claim
        return held or self._new_claim(random)

    def _new_claim(self, random: Random) -> Claim:
        """A claim of a process that is alive: one that is gone says nothing any more, and none has its name again."""
        return Claim(self._process(random), random.randint(1, 2), "n1")

    def _process(self, random: Random) -> str:
        return f"p{random.randint(1, 2)}-{self.gone}"

    # Workers and verifiers.

    @precondition(lambda self: self.active())
    @rule(random=randoms)
    def an_attempt_is_claimed(self, random: Random) -> None:
        self._send(act.start_attempt(self.run_state, random.choice(self.active()).id, claim=self._new_claim(random)))

    @precondition(lambda self: self.active())
    @rule(random=randoms)
    def somebody_returns(self, random: Random) -> None:
        node = random.choice(self.active())
        review = node.attempt is not None and node.attempt.kind == "verify"
        self._send(self._verdict(random, node, VERDICTS) if review else self._outcome(random, node, OUTCOMES))

    @precondition(lambda self: self.active())
    @rule(random=randoms, times=st.integers(1, 10))
    def all_goes_well(self, random: Random, times: int) -> None:
        """For a while, so that runs get on."""
        for _ in range(times):
            if active := self.active():
                node = random.choice(active)
                review = node.attempt is not None and node.attempt.kind == "verify"
                self._send(self._verdict(random, node, ("pass",)) if review else self._outcome(random, node, WELL))

    @precondition(lambda self: self.active())
    @rule(random=randoms, times=st.integers(1, 2))
    def processes_die(self, random: Random, times: int) -> None:
        """One after the other, with the attempt that is the oldest."""
        for _ in range(times):
            if active := self.active():
                claim = self._claim(active[0], random)
                if active[0].attempt is not None and active[0].attempt.claim is None:
                    self._send(act.start_attempt(self.run_state, active[0].id, claim=claim))
                self.gone += 1
                self._send(c.ReportGone(claim.process))

    @precondition(lambda self: self.active())
    @rule(random=randoms)
    def all_goes_well_once_more(self, random: Random) -> None:
        self.all_goes_well(random, 5)

    @precondition(lambda self: self.active("work"))
    @rule(random=randoms)
    def a_planner_returns(self, random: Random) -> None:
        self._send(self._outcome(random, random.choice(self.active("work")), ("decompose",)))

    @precondition(lambda self: self.active())
    @rule(data=st.data(), random=randoms)
    def an_answer_is_nearly_right(self, data: st.DataObject, random: Random) -> None:
        node = random.choice(self.active())
        review = node.attempt is not None and node.attempt.kind == "verify"
        said = self._verdict(random, node, VERDICTS) if review else self._outcome(random, node, OUTCOMES)
        self._send(data.draw(nearly(said)), right=False)

    def _verdict(self, random: Random, node: TaskNode, words: Sequence[VerdictWord]) -> c.RunCommand:
        claim, usage = self._claim(node, random), random.choice(USAGES)
        return act.submit_verdict(self.run_state, node.id, random.choice(words), claim=claim, usage=usage)

    def _outcome(self, random: Random, node: TaskNode, kinds: Sequence[str]) -> c.RunCommand:
        kind = random.choice(kinds)
        outcome: OutcomeData = blocked()
        if kind == "candidate":
            outcome = a_candidate(random)
        elif kind == "decompose":
            outcome = self._proposal(random, node)
        claim, usage = self._claim(node, random), random.choice(USAGES)
        return act.submit_outcome(self.run_state, node.id, outcome, claim=claim, usage=usage)

    def _proposal(self, random: Random, node: TaskNode) -> OutcomeData:
        known = self._known(random, node)
        model = self.models[self.name].model
        allowed = judges_below(model, model.tasks[node.id])
        keys = random.choice((tuple([key for key in KEYS if key in allowed]),) * 4 + (KEYS,))
        specs = graph(random, self._new_name("c"), known, keys) if random.random() < 0.8 else ()
        children = [id for id in known if self.run_state.tasks[id].created_by is not None]
        reuse = (random.choice(children or known),) if known and (not specs or random.random() < 0.5) else ()
        expected = random.choice((None, None, self.run_state.graph_revision, 1))
        specs = tuple([self._spoilt(random, spec) for spec in specs])
        return decompose(*specs, reuse=reuse, expected_graph_revision=expected)

    def _known(self, random: Random, node: TaskNode) -> tuple[str, ...]:
        """What a task that `node` brings may wait for, as far as one sees at a glance; at times any task at all."""
        tasks = self.run_state.tasks
        usable = [id for id, other in tasks.items() if other.status not in ("cancelled", "superseded")]
        safe = tuple([id for id in usable if id != node.id and node.id not in tasks[id].deps])
        return random.choice((safe, safe, safe, safe, tuple(tasks)))

    def _spoilt(self, random: Random, spec: Spec) -> Spec:
        """At times with a name that is taken, or a verifier that nobody bound."""
        if random.random() < 0.95:
            return spec
        taken = [id for id in self.run_state.tasks if id not in spec.depends_on]
        wrong = random.choice(({"id": random.choice(taken or [spec.id])}, {"verifier": "nobody"}))
        return msgspec.structs.replace(spec, **wrong)

    def _new_name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}-"

    @precondition(lambda self: self.active())
    @rule(random=randoms, terminal=st.sampled_from((False, False, False, True)))
    def an_attempt_fails(self, random: Random, terminal: bool) -> None:
        node, said = random.choice(self.active()), failure(terminal=terminal)
        claim, usage = self._claim(node, random), random.choice(USAGES)
        self._send(act.fail_attempt(self.run_state, node.id, said, claim=claim, usage=usage))

    @precondition(lambda self: self.active())
    @rule(random=randoms)
    def a_process_has_something_else_to_say(self, random: Random) -> None:
        node, process = random.choice(self.active()), self._process(random)
        said = (
            act.release_attempt(self.run_state, node.id, claim=self._claim(node, random), usage=random.choice(USAGES)),
            c.RejectAttempt(node.id, node.epoch, process),
            c.ReportGone(process),
        )
        command = random.choice(said)
        self.gone += isinstance(command, c.ReportGone)
        self._send(command)

    @precondition(lambda self: any(node.attempt.claim for node in self.active()))
    @rule()
    def all_leases_are_renewed(self) -> None:
        held = [(node.id, at) for node in self.active() if (at := node.attempt) is not None]
        self._send(c.RenewLeases(tuple([c.Renewal(id, at.epoch, at.claim) for id, at in held if at.claim])))

    # Time and operators.

    @rule(ms=st.sampled_from((1, 500, 20_000)))
    def time_passes(self, ms: int) -> None:
        self.log.now_ms += ms

    @precondition(lambda self: self.timers())
    @rule(random=randoms, early_ms=st.sampled_from((0, 0, 0, 1)))
    def a_timer_fires(self, random: Random, early_ms: int) -> None:
        kind, id = random.choice(self.timers())
        self.log.now_ms = max(self.log.now_ms, act.deadline_ms(self.run_state, kind, id) - early_ms)
        self._send(act.fire_timer(self.run_state, kind, id))

    def timers(self) -> list[tuple[act.TimerKind, str]]:
        """The deadlines of the run."""
        found: list[tuple[act.TimerKind, str]] = []
        found += [("backoff", id) for id, node in self.run_state.tasks.items() if node.status == "backoff"]
        for node in self.active():
            if node.attempt is not None and node.attempt.claim is not None:
                found.append(("lease", node.id))
                if node.attempt.timeout_at_ms is not None:
                    found.append(("timeout", node.id))
        if self.run_state.limits.max_wall_ms is not None and self.run_state.status not in CLOSED_RUN:
            found.append(("wall", ""))
        return found

    @precondition(lambda self: self.run_state.status in ("paused", "blocked"))
    @rule(random=randoms)
    def the_run_goes_on(self, random: Random) -> None:
        """Whoever looks after the run does what it waits for."""
        run = self.run_state
        if run.status == "paused":
            self._send(c.ResumeRun())
        elif run.blocked:
            self._send(c.ResolveBlock(random.choice(tuple(run.blocked)), random.choice(("", "done"))))
        else:
            higher = {name: value for name, value in HIGHEST.items() if getattr(run.limits, name) is not None}
            self._send(c.SetLimits(msgspec.structs.replace(run.limits, **higher)))

    @rule(random=randoms)
    def an_operator_steers(self, random: Random) -> None:
        run = self.run_state
        node = run.tasks[random.choice([*run.tasks, *run.failed, *run.blocked])]
        asked = [judge_of(run, node) for node in self.active("verify")]
        pinned = run.bound().verifiers[key := random.choice([*VERIFIERS, *asked, *asked])]
        judges = random.choice((pinned.judges, pinned.judges, ("candidate",)))
        changed = pin(*judges, version=random.choice(("1", "2", "3")), assurance=pinned.assurance)
        said: tuple[c.RunCommand, ...] = (
            c.SetLimits(raised(random, run.limits)),
            c.PauseRun(),
            c.ResumeRun(),
            c.AmendRun(verifiers={key: changed}),
            c.AmendRun(failure_policy=random.choice(POLICIES)),
            c.AmendRun(max_depth=random.choice((1, 2)), max_decompositions=random.choice((1, 2))),
            c.RetryTask(node.id),
            c.ResolveBlock(node.id),
            *[c.CancelRun()] * (len(self.log.commands) > 30),
        )
        self._send(random.choice(said))

    @precondition(lambda self: self.run_state.failed)
    @rule(random=randoms)
    def a_task_is_retried(self, random: Random) -> None:
        self._send(c.RetryTask(random.choice(tuple(self.run_state.failed)), random.choice(("", "again"))))

    @rule(random=randoms)
    def the_graph_is_mended(self, random: Random) -> None:
        run = self.run_state
        parents = [node.created_by for node in run.tasks.values() if node.created_by is not None]
        node = run.tasks[random.choice([*run.tasks, *parents, *parents, *run.failed, *run.blocked, *run.cancelled])]
        keys = (*KEYS, *[node.spec.verifier] * len(KEYS))
        replacement = a_task(random, self._new_name("s"), self._known(random, node), keys)
        replacement = self._spoilt(random, replacement)
        said: tuple[c.RunCommand, ...] = (
            c.CancelTask(node.id),
            *[c.SupersedeTask(node.id, replacement, random.choice((None, None, run.graph_revision, 1)))] * 2,
        )
        self._send(random.choice(said))

    # What should change nothing.

    @precondition(lambda self: self.log.commands)
    @rule(random=randoms)
    def a_command_comes_again(self, random: Random) -> None:
        """Whatever it was and whatever happened since: it has no second effect. (A refused one may have its first.)

        Only an old renewal that comes behind a younger one holds a lease a little longer, and an old rejection delays a
        dispatch: of those two, only the last of each process is remembered.
        """
        place = random.choice(range(len(self.sent)))
        name, command = self.sent[place]
        value = self.log.commands[place].value
        had_its_effect, before = value in self.accepted, self._image()
        statuses = self.seen.statuses(self.log.run(name))
        events = self.log.deliver(value)
        self.sent.append((name, command))
        self.models[name].answered(command, events, self.log.now_ms, right=False)
        self.models[name].agrees(self.log.run(name))
        if had_its_effect:
            assert self._image() == before
            assert isinstance(events[0], CommandRepeated | CommandRefused | LeasesRenewed | AttemptUnserved)
        if name == self.name:
            self._took(command, statuses, events)

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
            self._send(command, right=False)

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


TestRun = RunMachine.TestCase
TestRun.settings = settings(max_examples=scale(40, 2_000), stateful_step_count=60, deadline=None)


class Counted(RunMachine):
    """The same machine, with counts of its own."""

    seen = Seen()


def test_the_machine_comes_past_everything() -> None:
    """Every command, event, refusal and change of status that a run can show does occur, so that what holds after each
    step says something of them all. A generator that loses one fails here."""
    some = settings(max_examples=50, stateful_step_count=60, deadline=None, database=None, phases=(Phase.generate,))
    for _ in range(scale(12, 60)):
        run_state_machine_as_test(Counted, settings=some)
        missing = Counted.seen.missing(rare=scale(0, 1) == 1)
        if not missing:
            return
    raise AssertionError(f"never seen: {', '.join(missing)}")
