"""Random histories: runs that grow, fail, block, pause and end in every order that the decider allows.

Every step is chosen from what the present state offers, so that most commands are accepted; some are repeated, foreign,
stale or no commands at all, and some records are void.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final, Literal

import msgspec

from dagbok.events.canonical import Json, sha256_hex
from dagbok.events.envelope import Sender
from dagbok.events.run import commands as c
from dagbok.events.run.values import ArtifactItem, Candidate, Claim, Limits, OutcomeData, Spec, VerdictWord
from dagbok.projections.task_graph.state import CLOSED_RUN, Attempt, RunState, TaskNode
from dagbok.testing import act
from dagbok.testing.make import CHECK, blocked, candidate, decompose, failure, pin, start, task
from tests.support.logbuilder import LogBuilder

MAX_OPEN_RUNS: Final = 3
VERDICTS: Final[tuple[VerdictWord, ...]] = ("pass", "fail", "inconclusive", "error")
FOREIGN: Final = Sender("rival", "docs", "user:eve")
LIMITS: Final = Limits(
    max_open=3, max_attempts=2, max_lost=2, max_verifier_errors=2, max_tasks=60, backoff_base_ms=100, backoff_max_ms=400
)


def random_history(seed: int, steps: int) -> LogBuilder:
    """A history of `steps` commands. The same numbers give the same history, and fewer steps its beginning."""
    random = Random(seed)
    history = _History(random)
    for _ in range(steps):
        history.step()
    return history.builder


class _History:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.builder = LogBuilder()
        self.names = 0

    def step(self) -> None:
        """One command, and at times a void record."""
        random, builder = self.random, self.builder
        builder.now_ms += random.choice((0, 1, 50, 500))
        runs = [run for run in builder.state.runs.values() if run.status not in CLOSED_RUN or random.random() < 0.05]
        if not runs or (len(runs) < MAX_OPEN_RUNS and random.random() < 0.05):
            builder.send(f"run-{len(builder.state.runs)}", self._start())
        elif random.random() < 0.05:
            self._disturb(random.choice(runs).run)
        else:
            run = random.choice(runs)
            self._go_on(run.run, run)

    def _go_on(self, name: str, run: RunState) -> None:
        random = self.random
        active = [node for id in run.active if (node := run.tasks[id]).attempt is not None]
        backing_off = [node for node in run.tasks.values() if node.status == "backoff"]
        chance = random.random()
        if chance < 0.08 or not (active or backing_off):
            self.builder.send(name, self._by_client(run))
        elif backing_off and (chance < 0.3 or not active):
            node = random.choice(backing_off)
            self.builder.now_ms = max(self.builder.now_ms, node.due_ms)
            self.builder.send(name, act.fire_timer(run, "backoff", node.id))
        else:
            node = random.choice(active)
            if node.attempt is not None:
                self.builder.send(name, self._by_agent(run, node, node.attempt))

    def _by_client(self, run: RunState) -> c.RunCommand:
        random = self.random
        if run.status == "paused":
            return c.ResumeRun("on we go")
        if run.blocked and random.random() < 0.8:
            return c.ResolveBlock(random.choice(list(run.blocked)), random.choice(("", "done")))
        if run.status in CLOSED_RUN or random.random() < 0.15:
            return c.CancelRun("enough")
        if random.random() < 0.3:
            return c.SetLimits(msgspec.structs.replace(run.limits, max_open=run.limits.max_open + 1))
        return c.PauseRun("lunch") if random.random() < 0.3 else self._renew(run)

    def _renew(self, run: RunState) -> c.RunCommand:
        held = [(id, attempt) for id in run.active if (attempt := run.tasks[id].attempt) and attempt.claim]
        if held and self.random.random() < 0.3:
            return c.ReportGone(held[0][1].claim.process if held[0][1].claim else "")
        return c.RenewLeases(tuple(c.Renewal(id, at.epoch, at.claim) for id, at in held if at.claim))

    def _by_agent(self, run: RunState, node: TaskNode, attempt: Attempt) -> c.RunCommand:
        random = self.random
        claim = attempt.claim or Claim(random.choice(("p1", "p2")), 1, f"n{attempt.epoch}")
        if attempt.claim is None and random.random() < 0.4:
            return act.start_attempt(run, node.id, claim=claim)
        chance = random.random()
        if chance < 0.05 and attempt.claim is None:
            return c.RejectAttempt(node.id, attempt.epoch, "p3")
        if chance < 0.08:
            return act.release_attempt(run, node.id, claim=claim)
        if chance < 0.16:
            terminal = random.random() < 0.2
            return act.fail_attempt(run, node.id, failure(terminal=terminal), claim=claim)
        if chance < 0.25 and attempt.claim is not None:
            timed = attempt.timeout_at_ms is not None and random.random() < 0.7
            kind: Literal["timeout", "lease"] = "timeout" if timed else "lease"
            command = act.fire_timer(run, kind, node.id)
            self.builder.now_ms = max(self.builder.now_ms, act.deadline_ms(run, kind, node.id))
            return command
        if attempt.kind == "verify":
            return self._verdict(run, node, claim)
        return act.submit_outcome(run, node.id, self._outcome(run, node), claim=claim)

    def _verdict(self, run: RunState, node: TaskNode, claim: Claim) -> c.RunCommand:
        if node.staged is not None and self.random.random() < 0.1:
            return c.StartAttempt(node.id, node.epoch - 1, claim)
        verdict = self.random.choices(VERDICTS, (7, 1.5, 0.5, 1))[0]
        return act.submit_verdict(run, node.id, verdict, claim=claim)

    def _outcome(self, run: RunState, node: TaskNode) -> OutcomeData:
        random = self.random
        chance = random.random()
        if chance < 0.06:
            return blocked("ask Ann")
        if chance < 0.4:
            return self._proposal(run, node)
        if chance < 0.6:
            stored = ArtifactItem("big", sha256_hex(node.id.encode()), 1 << 20, "text/plain")
            return Candidate((*candidate({"of": node.id}).artifacts, stored))
        outputs: Json = {"n": 1} if random.random() < 0.5 else None
        return candidate({"of": node.id, "epoch": node.epoch}, outputs=outputs)

    def _proposal(self, run: RunState, node: TaskNode) -> OutcomeData:
        random = self.random
        ids = [self._name() for _ in range(random.randrange(0, 4))]
        others = list(run.tasks)
        tasks = [
            self._task(id, tuple(random.sample(ids[:place], min(place, random.randrange(3)))), others)
            for place, id in enumerate(ids)
        ]
        reuse = tuple(random.sample(others, min(len(others), random.randrange(3))))
        stale = run.graph_revision - 1 if random.random() < 0.1 else None
        return decompose(*tasks, reuse=reuse, expected_graph_revision=stale)

    def _start(self) -> c.RunCommand:
        random = self.random
        ids = [self._name() for _ in range(random.randrange(1, 6))]
        tasks = [
            self._task(id, tuple(random.sample(ids[:place], min(place, random.randrange(3)))))
            for place, id in enumerate(ids)
        ]
        judges = {CHECK: pin("candidate", *random.choice(((), ("decomposition",)))), "judge": pin("decomposition")}
        return start(
            *tasks,
            verifiers=judges,
            failure_policy=random.choice(("continue_independent", "fail_fast")),
            max_decompositions=2,
            max_depth=3,
            limits=LIMITS,
        )

    def _task(self, id: str, depends_on: tuple[str, ...], others: list[str] | None = None) -> Spec:
        random = self.random
        if others and random.random() < 0.3:
            depends_on = (*depends_on, random.choice(others))
        return task(
            id,
            depends_on=depends_on,
            goal=f"do {id}",
            proposal_verifier=random.choice((None, None, "judge")),
            priority=random.randrange(3),
            timeout_ms=random.choice((None, 5_000)),
            lease_ms=10_000,
        )

    def _name(self) -> str:
        self.names += 1
        return f"t{self.names}"

    def _disturb(self, run: str) -> None:
        builder, random = self.builder, self.random
        disturbances: list[Callable[[], object]] = [
            lambda: builder.deliver(b"no command"),
            lambda: builder.send(run, c.PauseRun(), sender=FOREIGN),
            lambda: builder.void(b"no commit"),
        ]
        if builder.commands:
            disturbances.append(lambda: builder.deliver(random.choice(builder.commands).value))
            disturbances.append(lambda: builder.void(random.choice(builder.records).value))
        random.choice(disturbances)()
