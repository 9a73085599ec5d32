"""`given(…).when(…).then(…)` for the decider of runs. The package's docstring has an example."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from dagbok.agents.scheduler.decide import By, Repeated
from dagbok.agents.scheduler.execute import execute
from dagbok.events.codes import Code
from dagbok.events.errors import Refused
from dagbok.events.run.amounts import NOTHING
from dagbok.events.run.commands import AmendRun, CancelTask, ResolveBlock, RetryTask, RunCommand, SupersedeTask
from dagbok.events.run.events import Event
from dagbok.events.run.values import (
    Claim,
    Failure,
    FailurePolicy,
    OutcomeData,
    Report,
    Spec,
    Usage,
    VerdictWord,
    VerifierPin,
)
from dagbok.projections.task_graph.evolve import evolve
from dagbok.projections.task_graph.state import At, RunState, TaskNode
from dagbok.testing import act
from dagbok.testing.make import CLAIM, failure, start
from dagbok.testing.match import Expected, difference, shown

PARTITION = 0
Answer = tuple[Event, ...] | Refused | Repeated


class Step(msgspec.Struct, frozen=True):
    """An event, and where it stands."""

    at: At
    event: Event


class Scenario(msgspec.Struct, frozen=True):
    """A history, and what the last command led to. A value: every step gives a new one, and the old one stays usable.

    `next_offset` is where the next commit would stand, `now_ms` the log time of the last one, `answer` what the last
    command led to: its events, or why there are none.
    """

    steps: tuple[Step, ...] = ()
    next_offset: int = 0
    now_ms: int = 0
    answer: Answer | None = None

    @property
    def state(self) -> RunState:
        """The state after the history, folded anew from its events."""
        run = RunState(run="run", tenant="tenant", project="project")
        for step in self.steps:
            evolve(run, step.event, step.at)
        return run

    @property
    def events(self) -> tuple[Event, ...]:
        """The events of the last command. Raises `AssertionError` when it was refused, or there was none."""
        if isinstance(self.answer, tuple):
            return self.answer
        raise AssertionError(f"there are no events: {self._shown_answer()}")

    def task(self, id: str) -> TaskNode:
        """The state of one task."""
        return self.state.tasks[id]

    def when(
        self, command: RunCommand, *, now_ms: int | None = None, id: str | None = None, actor: str = "user:test"
    ) -> Scenario:
        """Try a command at a log time (never before the last one), under a command id (a new one unless given)."""
        now = self.now_ms if now_ms is None else max(now_ms, self.now_ms)
        by = By(id or f"command-{self.next_offset}", actor, now)
        try:
            events = tuple(execute(self.state, command, by, PARTITION, self.next_offset))
        except (Refused, Repeated) as answer:
            return Scenario(self.steps, self.next_offset + 1, now, answer)
        return _continued(self, events, now, by.command_id, events)

    def after(self, ms: int) -> Scenario:
        """The same history, `ms` milliseconds later."""
        return msgspec.structs.replace(self, now_ms=self.now_ms + ms)

    def starts(self, task: str, *, claim: Claim = CLAIM, id: str | None = None) -> Scenario:
        """When the present attempt of the task is claimed."""
        return self.when(act.start_attempt(self.state, task, claim=claim), id=id)

    def submits(
        self,
        task: str,
        outcome: OutcomeData,
        *,
        claim: Claim | None = None,
        usage: Usage = NOTHING,
        id: str | None = None,
    ) -> Scenario:
        """When the worker of the present attempt returns an outcome."""
        return self.when(act.submit_outcome(self.state, task, outcome, claim=claim, usage=usage), id=id)

    def judges(
        self,
        task: str,
        verdict: VerdictWord | Report,
        *,
        claim: Claim | None = None,
        usage: Usage = NOTHING,
        id: str | None = None,
    ) -> Scenario:
        """When the verifier of the present review says `verdict`."""
        return self.when(act.submit_verdict(self.state, task, verdict, claim=claim, usage=usage), id=id)

    def fails(
        self,
        task: str,
        failed: Failure | None = None,
        *,
        claim: Claim | None = None,
        usage: Usage = NOTHING,
        id: str | None = None,
    ) -> Scenario:
        """When the present attempt, of a worker or a verifier, fails."""
        return self.when(act.fail_attempt(self.state, task, failed or failure(), claim=claim, usage=usage), id=id)

    def suspends(
        self,
        task: str,
        part: bytes = b"{}",
        *,
        keep: int = 0,
        turn: int | None = None,
        claim: Claim | None = None,
        id: str | None = None,
    ) -> Scenario:
        """When the worker of the present attempt puts its session down, behind the present turn unless told
        otherwise."""
        return self.when(act.suspend_session(self.state, task, part, keep=keep, turn=turn, claim=claim), id=id)

    def releases(
        self, task: str, *, claim: Claim | None = None, usage: Usage = NOTHING, id: str | None = None
    ) -> Scenario:
        """When the present attempt is handed back."""
        return self.when(act.release_attempt(self.state, task, claim=claim, usage=usage), id=id)

    def fires(self, kind: act.TimerKind, task: str = "", *, id: str | None = None) -> Scenario:
        """When the deadline of this kind has come, and its timer fires; the `wall` time of the run names no task."""
        timer = act.fire_timer(self.state, kind, task)
        return self.when(timer, now_ms=timer.deadline_ms, id=id)

    def resolves(self, task: str, note: str = "") -> Scenario:
        """When a person did what a blocked task waits for."""
        return self.when(ResolveBlock(task, note))

    def retries(self, task: str, note: str = "") -> Scenario:
        """When a person lets a failed task start again."""
        return self.when(RetryTask(task, note))

    def supersedes(self, task: str, replacement: Spec, *, expected_graph_revision: int | None = None) -> Scenario:
        """When a person puts another task in the place of one."""
        return self.when(SupersedeTask(task, replacement, expected_graph_revision))

    def cancels(self, task: str, reason: str = "") -> Scenario:
        """When a person ends one task, and what was created below it."""
        return self.when(CancelTask(task, reason))

    def amends(
        self,
        *,
        verifiers: Mapping[str, VerifierPin] | None = None,
        failure_policy: FailurePolicy | None = None,
        max_depth: int | None = None,
        max_decompositions: int | None = None,
    ) -> Scenario:
        """When a person changes what the run is bound to."""
        return self.when(AmendRun(dict(verifiers or {}), failure_policy, max_depth, max_decompositions))

    def then(self, *expected: Expected) -> Scenario:
        """The command led to these events, in this order: each an event, the type of one, or one that is `like` it."""
        shown = difference(expected, self.events)
        if shown is not None:
            raise AssertionError(f"other events than expected (- expected, + came):\n{shown}")
        return self

    def then_refused(self, code: Code, *, naming: str = "") -> Scenario:
        """The command was refused with this code, for a reason that contains `naming`; the state is as it was."""
        answer = self.answer
        if not isinstance(answer, Refused) or answer.code is not code or naming not in answer.message:
            reason = f", for a reason that names {naming!r}" if naming else ""
            raise AssertionError(f"expected a refusal, {code}{reason}; {self._shown_answer()}")
        return self

    def then_repeated(self, *, of: int | None = None) -> Scenario:
        """The command was known to be decided already, by the commit at offset `of` when that is given."""
        answer = self.answer
        if not isinstance(answer, Repeated) or of not in (None, answer.offset):
            at = "" if of is None else f" of the commit at offset {of}"
            raise AssertionError(f"expected a repeat{at}; {self._shown_answer()}")
        return self

    def then_state(self, **fields: object) -> Scenario:
        """The run has these values now: fields of `RunState`."""
        _compare("run", self.state, fields)
        return self

    def then_task(self, id: str, **fields: object) -> Scenario:
        """The task has these values now: fields of `TaskNode`."""
        _compare(f"task {id}", self.task(id), fields)
        return self

    def _shown_answer(self) -> str:
        answer = self.answer
        if answer is None:
            return "no command was tried"
        if isinstance(answer, tuple):
            return "the command was accepted:\n" + "\n".join(line for event in answer for line in shown(event))
        return f"the command was refused: {answer}" if isinstance(answer, Refused) else f"it was repeated: {answer}"


def given(*events: Event, now_ms: int = 0) -> Scenario:
    """A history that begins with these events, in one commit at `now_ms` of log time (milliseconds)."""
    return _continued(Scenario(), events, now_ms, "given", None) if events else Scenario(now_ms=now_ms)


def run_of(*tasks: Spec, now_ms: int = 0) -> Scenario:
    """A run that was started with these tasks; for other settings, `given().when(start(…))`."""
    begun = given(now_ms=now_ms).when(start(*tasks))
    assert begun.events
    return begun


def _continued(
    before: Scenario, events: tuple[Event, ...], now_ms: int, command_id: str, answer: Answer | None
) -> Scenario:
    offset = before.next_offset
    steps = [Step(At(PARTITION, offset, index, now_ms, command_id), event) for index, event in enumerate(events)]
    return Scenario((*before.steps, *steps), offset + 1, now_ms, answer)


def _compare(what: str, got: RunState | TaskNode, fields: dict[str, object]) -> None:
    wrong = [
        f"    {name}: expected {value!r}, is {getattr(got, name)!r}"
        for name, value in fields.items()
        if getattr(got, name) != value
    ]
    if wrong:
        raise AssertionError("\n".join([f"the state of the {what} differs:", *wrong]))
