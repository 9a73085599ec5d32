"""What an accepted command does to the model, and what follows from it.

The events are read for what the documents leave open alone: the due time of a backoff, the input that an attempt is
about, which of several attempts opens first, the code of a proposal that breaks more than one rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from dagbok.events.run import commands as c
from dagbok.events.run import events as e
from dagbok.events.run.values import Blocked, Candidate, Decompose, OutcomeData
from tests.property.run_model import Model
from tests.property.run_model_amounts import amount, reservation, total
from tests.property.run_model_attempts import renewed
from tests.property.run_model_edges import check_added, check_verified
from tests.property.run_model_overtaken import check_spent
from tests.property.run_model_people import OF_PEOPLE, ordered
from tests.property.run_model_rules import breaches
from tests.property.run_model_task import Attempt, Task

SAYS_NOTHING_OF_THE_GRAPH = (c.PauseRun, c.CancelRun, c.StartAttempt, c.RenewLeases, c.RejectAttempt, c.SuspendSession)
E = TypeVar("E", bound=e.Event)


def take(run: Model, command: c.RunCommand, events: Sequence[e.Event], now_ms: int, *, right: bool = True) -> None:
    """The command is accepted at a log time, with these events. `right`: it is well-formed, down to the specs in it:
    what a spec may say at all is not the model's subject."""
    run.reopened = False
    if isinstance(command, OF_PEOPLE):
        ordered(run, command, events)
    else:
        _Effect(run, events, now_ms, right=right).of(command)
    if not isinstance(command, SAYS_NOTHING_OF_THE_GRAPH):
        proceed(run, events, now_ms)


def proceed(run: Model, events: Sequence[e.Event], now_ms: int) -> None:
    """Everything opens that may, and nothing else; then the run may be over."""
    for event in events:
        opens = isinstance(event, e.AttemptOpened)
        if isinstance(event, e.TaskBlocked) and event.code == "context_overflow":
            assert (event.task, "work") in run.may_open(now_ms), f"{event.task} has no turn"
            assert run.overflows(run.tasks[event.task])
            run.tasks[event.task].stop("blocked", event.code)
        elif isinstance(event, e.AttemptOpened):
            assert (event.task, event.kind) in run.may_open(now_ms), f"{event} has no turn: {run.may_open(now_ms)}"
            _open(run, run.tasks[event.task], event)
        assert not opens or run.word == "running"
    assert not run.may_open(now_ms), f"nobody opened {run.may_open(now_ms)}"
    run.conclude(now_ms)


def _open(run: Model, task: Task, event: e.AttemptOpened) -> None:
    task.epoch += 1
    task.told = ""
    task.attempt = Attempt(event.kind, task.epoch, event.input_hash)
    if event.kind == "work":
        task.made = run.changes
        assert not run.overflows(task)
        task.attempt.reserved = reservation(task.spec)
        assert event.key == task.spec.worker
    else:
        assert event.key == run.judge(task)
    assert event.reserved is None or amount(event.reserved) == task.attempt.reserved


class _Effect:
    """One command of a worker, a verifier, or a clock."""

    def __init__(self, run: Model, events: Sequence[e.Event], now_ms: int, *, right: bool) -> None:
        self.run, self.events, self.now_ms, self.right = run, events, now_ms, right

    def of(self, command: c.RunCommand) -> None:
        run = self.run
        match command:
            case c.StartAttempt(task=id, claim=claim):
                task = run.tasks[id]
                assert task.attempt is not None
                task.attempt.claim, task.attempt.lease_until_ms = claim, self.now_ms + task.spec.lease_ms
                if task.attempt.kind == "work" and task.spec.timeout_ms is not None:
                    task.attempt.timeout_at_ms = self.now_ms + task.spec.timeout_ms
            case c.RenewLeases():
                for id, attempt in renewed(run, command, self.now_ms).items():
                    attempt.lease_until_ms = self.now_ms + run.tasks[id].spec.lease_ms
            case c.SuspendSession():
                run.put_down(run.tasks[command.task], command.part)
            case c.ReleaseAttempt() | c.FailAttempt() | c.SubmitOutcome() | c.SubmitVerdict():
                task = run.tasks[command.task]
                run.spent = total(run.spent, amount(command.usage))
                assert task.attempt is not None
                review, task.attempt = task.attempt.kind == "verify", None
                if isinstance(command, c.FailAttempt):
                    self._fail(task, command, review=review)
                elif isinstance(command, c.SubmitOutcome):
                    self._outcome(task, command.outcome)
                elif isinstance(command, c.SubmitVerdict):
                    self._verdict(task, command)
            case c.FireTimer(kind="lease", task=id):
                self._lose(run.tasks[id])
            case c.FireTimer(kind="timeout", task=id):
                run.close(run.tasks[id])
                self._count_failure(run.tasks[id], "timeout")
            case c.ReportGone(process=process):
                for task in run.tasks.values():
                    held = None if task.attempt is None else task.attempt.claim
                    if held is not None and held.process == process:
                        self._lose(task)

    def _outcome(self, task: Task, outcome: OutcomeData) -> None:
        run = self.run
        if isinstance(outcome, Blocked):
            task.stop("blocked", "worker_blocked")
        elif isinstance(outcome, Candidate):
            sizes = [item.size_bytes for item in outcome.artifacts]
            most = run.limits.max_total_artifact_bytes
            if max(sizes) > run.limits.max_artifact_bytes or (
                most is not None and run.artifact_bytes + sum(sizes) > most
            ):
                task.stop("blocked", "budget_exhausted")
                return
            run.artifact_bytes += sum(sizes)
            task.staged, task.verifier_errors = outcome, 0
        elif self._is_refused(task, outcome):
            return
        elif run.judge(task) == "structure":
            self._accept(task, outcome)
        else:
            task.staged, task.verifier_errors, task.made = outcome, 0, run.changes

    def _verdict(self, task: Task, command: c.SubmitVerdict) -> None:
        verdict, staged = command.report.verdict, task.staged
        if verdict == "fail":
            self._count_failure(task, "verification_failed")
        elif verdict == "error":
            self._verifier_error(task)
        elif verdict == "inconclusive":
            task.stop("blocked", "inconclusive")
        elif isinstance(staged, Candidate):
            task.outputs, task.artifacts = msgspec.json.decode(staged.outputs), staged.artifacts
            task.stop("verified")
            check_verified(self.run, task, self._event(e.TaskVerified))
        elif isinstance(staged, Decompose) and not self._is_refused(task, staged):
            self._accept(task, staged)

    def _is_refused(self, task: Task, proposal: Decompose) -> bool:
        codes = breaches(self.run, task, proposal)
        if not self.right and any(isinstance(event, e.DecompositionRefused) for event in self.events):
            codes.add("invalid_spec")
        if not codes:
            return False
        refused = self._event(e.DecompositionRefused)
        assert refused.code in codes
        check_spent(self.run, task, proposal, refused)
        task.staged = None
        if refused.spent:
            task.stop("blocked", refused.code)
            return True
        task.conflicts += 1
        if task.conflicts > 1:
            self._rest(task, task.conflicts - 1)
        return True

    def _accept(self, task: Task, proposal: Decompose) -> None:
        run, id = self.run, task.spec.id
        new = [run.add(spec, id).spec.id for spec in proposal.tasks]
        task.deps += [dep for dep in dict.fromkeys((*new, *proposal.reuse)) if dep not in task.deps]
        task.staged, task.conflicts, task.composition = None, 0, bytes(proposal.composition_contract)
        task.decompositions += 1
        run.revision, run.changes = run.revision + 1, run.changes + 1
        check_added(run, self.events)

    def _fail(self, task: Task, command: c.FailAttempt, *, review: bool) -> None:
        if review:
            self._verifier_error(task, again=command.failure.failure == "retryable")
        elif command.failure.failure == "terminal":
            task.failures += 1
            task.stop("failed", command.failure.code)
        else:
            self._count_failure(task, command.failure.code)

    def _count_failure(self, task: Task, code: str) -> None:
        task.failures += 1
        task.staged = None
        if task.failures < (task.spec.max_attempts or self.run.limits.max_attempts):
            self._rest(task, task.failures)
        else:
            task.stop("failed", code)

    def _verifier_error(self, task: Task, *, again: bool = True) -> None:
        task.verifier_errors += 1
        if again and task.verifier_errors < self.run.limits.max_verifier_errors:
            self._rest(task, task.verifier_errors)
        else:
            task.stop("blocked", "verifier_error", keep=True)

    def _lose(self, task: Task) -> None:
        self.run.close(task)
        task.lost += 1
        if task.lost >= self.run.limits.max_lost:
            review = task.staged is not None
            task.stop("blocked" if review else "failed", "poison", keep=review)

    def _rest(self, task: Task, times: int) -> None:
        """Between half and the whole of a delay that doubles."""
        full = min(self.run.limits.backoff_max_ms, self.run.limits.backoff_base_ms * 2 ** (times - 1))
        task.told, task.due_ms = "backoff", self._event(e.TaskBackedOff).due_ms
        assert full // 2 <= task.due_ms - self.now_ms <= full

    def _event(self, kind: type[E]) -> E:
        found = [event for event in self.events if isinstance(event, kind)]
        assert len(found) == 1, f"one {kind.__name__} was to come, {len(found)} came"
        return found[0]
