"""What workers and verifiers say in random runs, and what becomes of their processes."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from dagbok.events.run import commands as c
from dagbok.events.run.values import Claim, OutcomeData, Spec, Usage, VerdictWord
from dagbok.projections.task_graph.state import TaskNode
from dagbok.testing import act, blocked, decompose, failure
from tests.property.run_graphs import KEYS, a_candidate, graph
from tests.property.run_machine import Runs, randoms
from tests.property.run_model_policy import judges_below
from tests.support.strategies import nearly

VERDICTS: tuple[VerdictWord, ...] = ("pass", "fail", "inconclusive", "error")
OUTCOMES = ("candidate", "candidate", "candidate", "blocked")
WELL = ("candidate", "candidate", "candidate", "decompose")
USAGES = (*[Usage()] * 4, Usage(5, "0.25"), Usage(5, "0.25"), Usage(30, "2"))


class Agents(Runs):
    """Whoever takes attempts."""

    def _claim(self, node: TaskNode, random: Random) -> Claim:
        held = None if node.attempt is None else node.attempt.claim
        return held or self._new_claim(random)

    def _new_claim(self, random: Random) -> Claim:
        """A claim of a process that is alive: one that is gone says nothing any more, and none has its name again."""
        return Claim(self._process(random), random.randint(1, 2), "n1")

    def _process(self, random: Random) -> str:
        return f"p{random.randint(1, 2)}-{self.gone}"

    @precondition(lambda self: self.active())
    @rule(random=randoms, times=st.integers(1, 3))
    def attempts_are_claimed(self, random: Random, times: int) -> None:
        for node in self.active()[-times:]:
            self._send(act.start_attempt(self.run_state, node.id, claim=self._new_claim(random)))

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
    @rule(random=randoms, times=st.integers(1, 3))
    def planners_return(self, random: Random, times: int) -> None:
        """One after the other, and their plans are mostly approved."""
        for _ in range(times):
            if active := self.active("work"):
                node = random.choice(active)
                self._send(self._outcome(random, node, ("decompose",)))
                if node.id in self.run_state.active and self.run_state.tasks[node.id].status == "verifying":
                    self._send(self._verdict(random, self.run_state.tasks[node.id], ("pass", "pass", *VERDICTS)))

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
        """A plan: mostly a sound one, which at times waits for what another plan brought."""
        sound = random.random() < 0.6
        known = self._known(node) if sound else tuple(self.run_state.tasks)
        model = self.models[self.name].model
        allowed = judges_below(model, model.tasks[node.id])
        keys = tuple([key for key in KEYS if key in allowed]) if sound or random.random() < 0.8 else KEYS
        specs = graph(random, self._new_name("c"), known, keys) if random.random() < 0.7 else ()
        others = [id for id in known if self.run_state.tasks[id].created_by not in (None, node.id)]
        reuse = (random.choice(others or known),) if known and (not specs or random.random() < 0.5) else ()
        expected = random.choice((None, self.run_state.graph_revision, *(() if sound else (1,))))
        specs = specs if sound else tuple([self._spoilt(random, spec) for spec in specs])
        return decompose(*specs, reuse=reuse, expected_graph_revision=expected)

    def _known(self, node: TaskNode) -> tuple[str, ...]:
        """What a task that `node` brings may wait for: what is not given up, and does not wait for `node` itself."""
        tasks, waiting = self.run_state.tasks, {node.id}
        for _ in tasks:
            waiting |= {id for id, other in tasks.items() if not waiting.isdisjoint(other.deps)}
        usable = [id for id, other in tasks.items() if other.status not in ("cancelled", "superseded")]
        return tuple([id for id in usable if id not in waiting])

    def _spoilt(self, random: Random, spec: Spec) -> Spec:
        """At times with a name that is taken, or a verifier that nobody bound."""
        if random.random() < 0.9:
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

    @precondition(lambda self: self._left())
    @rule(random=randoms)
    def a_session_is_gone_on_with(self, random: Random) -> None:
        self._send(act.start_attempt(self.run_state, random.choice(self._left()).id))

    def _left(self) -> list[TaskNode]:
        """Tasks with a session whose attempt nobody has claimed yet."""
        return [node for node in self.active() if node.session and node.attempt and node.attempt.claim is None]

    @precondition(lambda self: self.active())
    @rule(random=randoms, behind=st.sampled_from((0, 0, 0, 0, 1, -1)))
    def a_worker_puts_its_session_down(self, random: Random, behind: int) -> None:
        node = random.choice(self.active())
        turn, parts = (0, 0) if node.session is None else (node.session.turn, len(node.session.parts))
        part, keep = b"x" * random.choice((1, 300)), random.randint(0, parts)
        claim = self._claim(node, random)
        self._send(act.suspend_session(self.run_state, node.id, part, keep=keep, turn=turn + 1 + behind, claim=claim))

    @precondition(lambda self: any(node.attempt.claim for node in self.active()))
    @rule()
    def all_leases_are_renewed(self) -> None:
        held = [(node.id, at) for node in self.active() if (at := node.attempt) is not None]
        self._send(c.RenewLeases(tuple([c.Renewal(id, at.epoch, at.claim) for id, at in held if at.claim])))
