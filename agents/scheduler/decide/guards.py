"""Who may say something about an attempt: the checks that stand before every command of a worker or verifier."""

from __future__ import annotations

from dagbok.agents.scheduler.decide.cause import By, Repeated
from dagbok.events.codes import Code
from dagbok.events.errors import Refused
from dagbok.events.ids import ID_PATTERN
from dagbok.events.run.values import AttemptKind, Claim
from dagbok.projections.task_graph.state import CLOSED_RUN, Attempt, RunState, TaskNode

MAX_NONCE_CHARS = 128


def known_task(run: RunState, task: str) -> TaskNode:
    """The task, or `not_found`."""
    node = run.tasks.get(task)
    if node is None:
        raise Refused(Code.NOT_FOUND, f"run {run.run} has no task {task!r}")
    return node


def open_run(run: RunState) -> None:
    """Refuse what comes before the start of a run, or after its end."""
    if not run.exists:
        raise Refused(Code.NOT_FOUND, f"there is no run {run.run}")
    if run.status in CLOSED_RUN:
        raise Refused(Code.RUN_CLOSED, f"run {run.run} is {run.status}")


def mendable_run(run: RunState) -> None:
    """Refuse what comes before the start of a run, or after an end that nothing can change: a run that failed is
    closed, but may be reopened."""
    if run.status != "failed":
        open_run(run)


def present_attempt(run: RunState, task: str, epoch: int, by: By) -> tuple[TaskNode, Attempt]:
    """The attempt that `epoch` names, if it is the present one. The command that closed it gets its first answer
    again."""
    node = known_task(run, task)
    for command_id, offset in (node.worked_by, node.judged_by):
        if command_id == by.command_id:
            raise Repeated(offset)
    open_run(run)
    attempt = node.attempt
    if attempt is None or attempt.epoch != epoch:
        raise _stale(node, epoch)
    return node, attempt


def _stale(node: TaskNode, epoch: int) -> Refused:
    named = f"attempt {epoch} of task {node.id}"
    if epoch > node.epoch or epoch < 1:
        last = f"its last is {node.epoch}" if node.epoch else "it has had none"
        return Refused(
            Code.STALE_ATTEMPT,
            f"there is no {named}: {last}",
            advice="name the epoch that the dispatch names: this one was made up, or belongs to another run",
        )
    if epoch < node.epoch:
        return Refused(Code.STALE_ATTEMPT, f"{named} is over: attempt {node.epoch} came after it")
    return Refused(Code.STALE_ATTEMPT, f"{named} is over: the task is {node.status}")


def check_claim(claim: Claim) -> None:
    """A claim names its process by an id: hosts make lock files of it, and its path must stay theirs."""
    if (
        ID_PATTERN.fullmatch(claim.process) is None
        or claim.process.startswith(".")
        or len(claim.nonce) > MAX_NONCE_CHARS
    ):
        raise Refused(Code.UNDECODABLE, "a claim names a process id, a number and a short random word")


def held_attempt(
    run: RunState, task: str, epoch: int, claim: Claim, by: By, kind: AttemptKind | None = None
) -> tuple[TaskNode, Attempt]:
    """The present attempt, held by `claim` or by nobody yet, its lease not over by log time."""
    check_claim(claim)
    node, attempt = present_attempt(run, task, epoch, by)
    if kind is not None and attempt.kind != kind:
        raise Refused(Code.STALE_ATTEMPT, f"attempt {epoch} of task {task} is of kind {attempt.kind}, not {kind}")
    if attempt.claim is None:
        return node, attempt
    if attempt.claim != claim:
        raise Refused(Code.LEASE_REJECTED, f"attempt {epoch} of task {task} is held by process {attempt.claim.process}")
    if by.now_ms >= attempt.lease_until_ms:
        late_ms = by.now_ms - attempt.lease_until_ms
        raise Refused(Code.LEASE_REJECTED, f"the lease of attempt {epoch} of task {task} ended {late_ms} ms ago")
    return node, attempt
