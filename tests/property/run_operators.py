"""What people do in random runs, and what the passing of time does."""

from __future__ import annotations

from random import Random

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from dagbok.agents.scheduler.decide.judges import judge_of
from dagbok.events.run import commands as c
from dagbok.projections.task_graph.state import CLOSED_RUN, FINAL_TASK
from dagbok.testing import act, pin
from tests.property.run_agents import Agents
from tests.property.run_graphs import HIGHEST, KEYS, VERIFIERS, a_task, set_limits
from tests.property.run_machine import POLICIES, randoms


class Operators(Agents):
    """Whoever looks after runs."""

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
                    found += [("timeout", node.id)] * 2
        if self.run_state.limits.max_wall_ms is not None and self.run_state.status not in CLOSED_RUN:
            found.append(("wall", ""))
        return found

    @precondition(lambda self: self.run_state.status == "running")
    @rule(random=randoms)
    def the_run_is_paused_for_a_while(self, random: Random) -> None:
        """What runs may finish meanwhile."""
        self._send(c.PauseRun())
        self.all_goes_well(random, 3)
        self._send(
            random.choice((c.ResumeRun(), c.ResumeRun(), c.CancelTask(random.choice(tuple(self.run_state.tasks)))))
        )

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
        pinned = run.bound().verifiers[key := random.choice(tuple(VERIFIERS))]
        judges = random.choice((pinned.judges, pinned.judges, ("candidate",)))
        changed = pin(*judges, version=random.choice(("1", "2", "3")), assurance=pinned.assurance)
        said: tuple[c.RunCommand, ...] = (
            set_limits(random, run.limits),
            c.PauseRun(),
            c.ResumeRun(),
            c.AmendRun(verifiers={key: changed}),
            c.AmendRun(failure_policy=random.choice(POLICIES)),
            c.AmendRun(max_depth=random.choice((1, 2)), max_decompositions=random.choice((1, 2))),
            c.RetryTask(node.id),
            c.ResolveBlock(node.id),
            *[c.CancelRun()] * 2 * (len(self.log.commands) > 20),
        )
        self._send(random.choice(said))

    @precondition(lambda self: self.active("verify"))
    @rule(random=randoms)
    def a_verifier_gets_another_version_while_it_judges(self, random: Random) -> None:
        key = judge_of(self.run_state, random.choice(self.active("verify")))
        pinned = self.run_state.bound().verifiers[key]
        changed = msgspec.structs.replace(pinned, version=random.choice(("1", "2", "3")))
        self._send(c.AmendRun(verifiers={key: changed}))

    @precondition(lambda self: self.run_state.failed)
    @rule(random=randoms)
    def a_task_is_retried(self, random: Random) -> None:
        self._send(c.RetryTask(random.choice(tuple(self.run_state.failed)), random.choice(("", "again"))))

    @rule(random=randoms)
    def the_graph_is_mended(self, random: Random) -> None:
        run = self.run_state
        planners = {node.created_by for node in run.tasks.values() if node.status not in FINAL_TASK}
        stuck = (*run.failed, *run.blocked, *run.cancelled)
        groups = [group for group in (tuple(run.tasks), tuple(planners - {None}), tuple(run.active), stuck) if group]
        node = run.tasks[random.choice(sorted(filter(None, random.choice(groups))))]
        keys = (*KEYS, *[node.spec.verifier] * len(KEYS))
        replacement = a_task(
            random, self._new_name("s"), random.choice((self._known(node), self._known(node), tuple(run.tasks))), keys
        )
        replacement = self._spoilt(random, replacement)
        said: tuple[c.RunCommand, ...] = (
            c.CancelTask(node.id),
            *[c.SupersedeTask(node.id, replacement, random.choice((None, None, run.graph_revision, 1)))] * 2,
        )
        self._send(random.choice(said))

    @precondition(lambda self: self.planners())
    @rule(random=randoms, ends=st.booleans())
    def a_plan_gets_another_head(self, random: Random, ends: bool) -> None:
        """Who is to put the parts together is replaced, by somebody who needs one of them; and may be given up, too."""
        plan, child = random.choice(self.planners())
        spec = a_task(random, self._new_name("h"), (), (self.run_state.tasks[plan].spec.verifier,))
        spec = msgspec.structs.replace(spec, depends_on=(child,))
        self._send(c.SupersedeTask(plan, spec))
        if ends and spec.id in self.run_state.tasks:
            self._send(c.CancelTask(spec.id))

    def planners(self) -> list[tuple[str, str]]:
        """Tasks that wait for a task which they created, each with one such task."""
        run = self.run_state
        if run.status in CLOSED_RUN:
            return []
        pairs = [(node.created_by, id) for id, node in run.tasks.items() if node.status not in FINAL_TASK]
        waiting = {id for id, node in run.tasks.items() if node.status == "waiting"}
        return [(plan, child) for plan, child in pairs if plan is not None and plan in waiting]

    @precondition(lambda self: self.run_state.status == "blocked" and self.run_state.failed)
    @rule()
    def nobody_wants_a_blocked_run_after_a_failure(self) -> None:
        if self.run_state.bound().failure_policy != "fail_fast":
            self._send(c.AmendRun(failure_policy="fail_fast"))
