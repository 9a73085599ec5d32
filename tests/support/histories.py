"""Random histories: runs that grow, branch, fail, block, are mended, run out of budget, pause and end in every order
that the decider allows.

Every step is chosen from what the present state offers, so that most commands are accepted; some are repeated, foreign,
stale or no commands at all, and some records are void.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final, Literal

from dagbok.events.envelope import Sender
from dagbok.events.run import commands as c
from dagbok.events.run.values import Claim, VerdictWord
from dagbok.projections.task_graph.state import CLOSED_RUN, Attempt, RunState, TaskNode
from dagbok.testing import act
from dagbok.testing.make import CHECK, failure, pin, start
from tests.support.logbuilder import LogBuilder
from tests.support.random_values import RandomValues

MAX_OPEN_RUNS: Final = 3
VERDICTS: Final[tuple[VerdictWord, ...]] = ("pass", "fail", "inconclusive", "error")
FOREIGN: Final = Sender("rival", "docs", "user:eve")


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
        self.values = RandomValues(random)

    def step(self) -> None:
        """One command, and at times a void record."""
        random, builder = self.random, self.builder
        builder.now_ms += random.choice((0, 1, 50, 500))
        runs = [run for run in builder.state.runs.values() if self._is_looked_at(run)]
        if not runs or (len(runs) < MAX_OPEN_RUNS and random.random() < 0.05):
            builder.send(f"run-{len(builder.state.runs)}", self._start())
        elif random.random() < 0.05:
            self._disturb(random.choice(runs).run)
        else:
            run = random.choice(runs)
            self._go_on(run.run, run)

    def _is_looked_at(self, run: RunState) -> bool:
        """Runs that failed may be mended."""
        if run.status not in CLOSED_RUN:
            return True
        return self.random.random() < (0.3 if run.status == "failed" else 0.05)

    def _go_on(self, name: str, run: RunState) -> None:
        random = self.random
        active = [node for id in run.active if (node := run.tasks[id]).attempt is not None]
        backing_off = [node for node in run.tasks.values() if node.status == "backoff"]
        chance = random.random()
        if chance < 0.12 or not (active or backing_off):
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
        if run.failed and random.random() < 0.4:
            return c.RetryTask(random.choice(list(run.failed)), random.choice(("", "try harder")))
        if run.status == "blocked" and run.blocked_by == "budget_exhausted" and random.random() < 0.6:
            return c.SetLimits(self.values.raised(run.limits))
        if run.blocked and random.random() < 0.5:
            return c.ResolveBlock(random.choice(list(run.blocked)), random.choice(("", "done")))
        if random.random() < 0.4:
            return self._mend(run)
        if run.status in CLOSED_RUN or random.random() < 0.08:
            return c.CancelRun("enough")
        return self._steer(run)

    def _mend(self, run: RunState) -> c.RunCommand:
        """Something that changes the graph, or what the run is bound to."""
        random = self.random
        unsettled = [node.id for node in run.tasks.values() if node.status not in ("verified", "skipped", "superseded")]
        id = random.choice(unsettled or list(run.tasks))
        chance = random.random()
        if chance < 0.45:
            revision = random.choice((None, run.graph_revision, run.graph_revision - 1))
            others = [id for id, node in run.tasks.items() if node.status != "superseded"]
            return c.SupersedeTask(id, self.values.spec(self.values.name(), (), others), revision)
        if chance < 0.75:
            return c.CancelTask(id, random.choice(("", "not needed")))
        version = str(random.randrange(3))
        judges = run.bound().verifiers[CHECK].judges
        return c.AmendRun(
            verifiers={CHECK: pin(*judges, version=version)},
            failure_policy=random.choice((None, None, "fail_fast", "continue_independent")),
            reason="a better verifier",
        )

    def _steer(self, run: RunState) -> c.RunCommand:
        random = self.random
        chance = random.random()
        if chance < 0.25:
            return c.SetLimits(self.values.raised(run.limits))
        if chance < 0.45:
            return c.PauseRun("lunch")
        if chance < 0.65 and run.limits.max_wall_ms is not None:
            if random.random() < 0.7:
                self.builder.now_ms = max(self.builder.now_ms, act.deadline_ms(run, "wall"))
            return act.fire_timer(run, "wall")
        return self._renew(run)

    def _renew(self, run: RunState) -> c.RunCommand:
        held = [(id, attempt) for id in run.active if (attempt := run.tasks[id].attempt) and attempt.claim]
        if held and self.random.random() < 0.3:
            return c.ReportGone(held[0][1].claim.process if held[0][1].claim else "")
        return c.RenewLeases(tuple(c.Renewal(id, at.epoch, at.claim) for id, at in held if at.claim))

    def _by_agent(self, run: RunState, node: TaskNode, attempt: Attempt) -> c.RunCommand:
        random, usage = self.random, self.values.usage()
        claim = attempt.claim or Claim(random.choice(("p1", "p2")), 1, f"n{attempt.epoch}")
        if attempt.claim is None and random.random() < 0.4:
            return act.start_attempt(run, node.id, claim=claim)
        chance = random.random()
        if chance < 0.05 and attempt.claim is None:
            return c.RejectAttempt(node.id, attempt.epoch, "p3")
        if chance < 0.08:
            return act.release_attempt(run, node.id, claim=claim, usage=usage)
        if chance < 0.16:
            terminal = random.random() < 0.2
            return act.fail_attempt(run, node.id, failure(terminal=terminal), claim=claim, usage=usage)
        if chance < 0.25 and attempt.claim is not None:
            timed = attempt.timeout_at_ms is not None and random.random() < 0.7
            kind: Literal["timeout", "lease"] = "timeout" if timed else "lease"
            command = act.fire_timer(run, kind, node.id)
            self.builder.now_ms = max(self.builder.now_ms, act.deadline_ms(run, kind, node.id))
            return command
        if attempt.kind == "verify":
            return self._verdict(run, node, claim)
        if attempt.claim is not None and random.random() < 0.25:
            parts = () if node.session is None else node.session.parts
            return act.suspend_session(run, node.id, b"x" * random.randrange(1, 60), keep=random.randint(0, len(parts)))
        return act.submit_outcome(run, node.id, self.values.outcome(run, node), claim=claim, usage=usage)

    def _verdict(self, run: RunState, node: TaskNode, claim: Claim) -> c.RunCommand:
        if node.staged is not None and self.random.random() < 0.1:
            return c.StartAttempt(node.id, node.epoch - 1, claim)
        verdict = self.random.choices(VERDICTS, (7, 1.5, 0.5, 1))[0]
        return act.submit_verdict(run, node.id, verdict, claim=claim, usage=self.values.usage())

    def _start(self) -> c.RunCommand:
        random = self.random
        tasks = self.values.specs([self.values.name() for _ in range(random.randrange(1, 6))])
        both: Sequence[Literal["candidate", "decomposition"]] = ("candidate", "decomposition")
        judges = {CHECK: pin(*random.choice((both, both[:1]))), "judge": pin("decomposition")}
        return start(
            *tasks,
            verifiers=judges,
            failure_policy=random.choice(("continue_independent", "fail_fast")),
            max_decompositions=2,
            max_depth=3,
            limits=self.values.limits(),
        )

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
