"""The graph of a run in the plainest words there are: a second description, to compare the first one with.

Written from `docs/design/messages.md` (sections 3, 5, 6, 7) and the decisions in `docs/adr/`, not from the code.
Nothing is counted up or kept in an index: what a task is follows from what was said about it and from a walk over its
edges, every time it is asked for. `run_model_rules.py` says what is refused, `run_model_effects.py` and
`run_model_people.py` what an accepted command does.

Where the documents leave a choice (a code when several apply, the jitter of a backoff), the model allows all of them
and takes what the events say.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import Decimal

from dagbok.events.run.commands import StartRun
from dagbok.events.run.values import ArtifactItem, AttemptKind, Candidate, Spec
from tests.property.run_model_amounts import NOTHING, Amount, reservation, total
from tests.property.run_model_conditions import holds
from tests.property.run_model_task import Task

SETTLED = ("verified", "skipped")
FINAL = ("verified", "skipped", "cancelled", "superseded")
CAN_GO_ON = frozenset(("ready", "running", "verifying", "backoff"))
STANDSTILLS = ("blocked", "failed")


@dataclass
class Model:
    """A run. `word` is its status, `codes` those that it may be blocked or failed with, `of_limits`: it is blocked by
    its own limits rather than by tasks. `changes`: how often tasks or edges came, or tasks went."""

    command: StartRun
    started_ms: int
    tasks: dict[str, Task] = field(default_factory=dict)
    word: str = "running"
    codes: set[str] = field(default_factory=set)
    of_limits: bool = False
    reopened: bool = False
    revision: int = 1
    changes: int = 0
    spent: Amount = NOTHING
    artifact_bytes: int = 0

    def __post_init__(self) -> None:
        self.limits, self.pinned = self.command.limits, self.command.pinned
        for spec in self.command.tasks:
            self.add(spec, None).root = spec.id in self.command.roots

    def add(self, spec: Spec, parent: str | None) -> Task:
        """A new task of the graph."""
        deps = list(dict.fromkeys(spec.depends_on))
        self.tasks[spec.id] = Task(spec, len(self.tasks), parent, deps, list(spec.when))
        return self.tasks[spec.id]

    # Tasks.

    def statuses(self) -> dict[str, str]:
        """The status of every task, from its edges up."""
        found: dict[str, str] = {}

        def of(id: str) -> str:
            if id not in found:
                found[id] = self._status(self.tasks[id], [(dep, of(dep)) for dep in self.tasks[id].deps])
            return found[id]

        return {id: of(id) for id in self.tasks}

    def _status(self, task: Task, deps: list[tuple[str, str]]) -> str:
        edges = [self.edge(task, dep, status) for dep, status in deps]
        if task.told:
            return task.told
        if task.staged is not None:
            return "verifying"
        if "open" in edges:
            return "waiting"
        enough = "taken" in edges if task.spec.join == "any" else "not taken" not in edges
        if edges and not enough and not task.decompositions:
            return "skipped"
        return "running" if task.attempt is not None and task.attempt.claim is not None else "ready"

    def edge(self, task: Task, dep: str, status: str) -> str:
        """The edge from a task to its dependency, which has this status: open, taken or not taken."""
        if status not in SETTLED:
            return "open"
        conditions = [each for each in task.when if each.task == dep]
        taken = status == "verified" and all(holds(each, self.tasks[dep].outputs) for each in conditions)
        return "taken" if taken else "not taken"

    def depth(self, task: Task) -> int:
        """How many decompositions led to it."""
        return 0 if task.parent is None else 1 + self.depth(self.tasks[task.parent])

    def judge(self, task: Task) -> str:
        """Who judges what the task has staged, or its decompositions when it has staged nothing: the verifier it names
        for them, its own if that judges them, else that of the task which created it."""
        own, named = task.spec.verifier, task.spec.proposal_verifier
        if isinstance(task.staged, Candidate):
            return own
        if named is not None or "decomposition" in self.pinned.verifiers[own].judges:
            return named or own
        return "structure" if task.parent is None else self._judge_of_proposals(self.tasks[task.parent])

    def _judge_of_proposals(self, task: Task) -> str:
        return self.judge(replace(task, staged=None))

    # Attempts and budgets.

    def may_open(self, now_ms: int) -> set[tuple[str, AttemptKind]]:
        """Which attempts may open next. Reviews come first and are never held back; then whatever has waited out its
        backoff; then what is ready, by priority and age. Work that cannot be paid for holds back all work behind it."""
        statuses = self.statuses()
        attempts = [task for task in self.tasks.values() if task.attempt is not None]
        if self.word != "running" or self._matters_no_more(statuses, now_ms) or len(attempts) >= self.limits.max_open:
            return set()
        asked = {id for id, word in statuses.items() if word == "verifying" and self.tasks[id].attempt is None}
        if asked:
            return {(id, "verify") for id in asked}
        next_one = self._next(statuses, now_ms)
        if next_one is None:
            return set()
        if next_one.staged is not None:
            return {(next_one.spec.id, "verify")}
        if self.fits(next_one, statuses):
            return {(next_one.spec.id, "work")}
        resting = [id for id, task in self.tasks.items() if task.told == "backoff" and task.staged is not None]
        return {(id, "verify") for id in resting if self.tasks[id].due_ms <= now_ms}

    def _next(self, statuses: dict[str, str], now_ms: int) -> Task | None:
        rested = [task for task in self.tasks.values() if task.told == "backoff" and task.due_ms <= now_ms]
        if rested:
            return min(rested, key=lambda task: (task.due_ms, task.order))
        ready = [task for id, task in self.tasks.items() if statuses[id] == "ready" and task.attempt is None]
        return min(ready, key=lambda task: (-task.spec.priority, task.order), default=None)

    def fits(self, task: Task, statuses: dict[str, str]) -> bool:
        """The run can afford a work attempt at the task."""
        pending = [other for other in self._unsettled(statuses) if other.staged is not None]
        if len(pending) >= self.limits.max_pending_verifications:
            return False
        own = reservation(task.spec)
        used = total(self.spent, self.reserved(), own)
        most_tokens, most_cost = self.limits.max_tokens, self.limits.max_cost
        tokens = most_tokens is None or (used[0] <= most_tokens if own[0] else used[0] < most_tokens)
        cost = most_cost is None or (used[1] <= Decimal(most_cost) if own[1] else used[1] < Decimal(most_cost))
        return tokens and cost

    def reserved(self) -> Amount:
        """What the attempts of now may use."""
        return total(*(task.attempt.reserved for task in self.tasks.values() if task.attempt is not None))

    def overflows(self, task: Task) -> bool:
        """There is more to hand to the worker than the limits allow."""
        spec, own = task.spec, task.spec.limits
        handed = [item.size_bytes for dep in task.deps for item in self.tasks[dep].artifacts]
        texts = (spec.goal.encode(), bytes(spec.contract), bytes(spec.inputs), task.composition)
        size = sum(handed) + sum(map(len, texts))
        most = [self.limits.max_context_bytes, None if own is None else own.context_bytes]
        most_items = None if own is None else own.context_artifacts
        too_many = most_items is not None and len(handed) > most_items
        return too_many or any(limit is not None and size > limit for limit in most)

    def close(self, task: Task) -> None:
        """Its attempt ends without a word: it is charged what it reserved, if it ever began."""
        if task.attempt is not None and task.attempt.claim is not None:
            self.spent = total(self.spent, task.attempt.reserved)
        task.attempt = None

    def put_down(self, task: Task, part: ArtifactItem) -> None:
        """A turn of its session is over."""
        task.session += (part,)
        self.artifact_bytes += part.size_bytes

    # The run.

    def conclude(self, now_ms: int) -> None:
        """What the run is, once everything has opened that may."""
        if self.word not in ("running", "paused"):
            return
        self.word, self.codes, self.of_limits = self._end(self.statuses(), now_ms)
        if self.word not in ("running", "paused"):
            for task in self.tasks.values():
                self.close(task)

    def goes_on(self, now_ms: int) -> bool:
        """Something opens now, or the run ends."""
        ends = self.word == "running" and self._end(self.statuses(), now_ms)[0] != "running"
        return ends or bool(self.may_open(now_ms))

    def _end(self, statuses: dict[str, str], now_ms: int) -> tuple[str, set[str], bool]:
        words = set(statuses.values())
        blocked, failed = ({task.code for task in self.tasks.values() if task.told == word} for word in STANDSTILLS)
        can_go_on = words.intersection(CAN_GO_ON)
        if all(statuses[id] in SETTLED for id, task in self.tasks.items() if task.root):
            return "succeeded", set(), False
        if self.word == "paused":
            return "paused", set(), False
        if "failed" in words and self.pinned.failure_policy == "fail_fast":
            return "failed", failed, False
        if (can_go_on and self.is_late(now_ms)) or self._is_out_of_means(statuses, now_ms):
            return "blocked", {"budget_exhausted"}, True
        if can_go_on:
            return "running", set(), False
        if "blocked" in words:
            return "blocked", blocked, False
        return "failed", failed or {"task_cancelled"}, False

    def _is_out_of_means(self, statuses: dict[str, str], now_ms: int) -> bool:
        """Nothing runs that could give back what it reserved, no verdict is to come, and the next work is too dear."""
        awaited = any(task.attempt is not None or task.staged is not None for task in self._unsettled(statuses))
        next_one = self._next(statuses, now_ms)
        return not awaited and next_one is not None and not self.fits(next_one, statuses)

    def _unsettled(self, statuses: dict[str, str]) -> list[Task]:
        return [task for id, task in self.tasks.items() if statuses[id] in CAN_GO_ON]

    def _matters_no_more(self, statuses: dict[str, str], now_ms: int) -> bool:
        over = all(statuses[id] in SETTLED for id, task in self.tasks.items() if task.root)
        return over or self.fails_fast() or self.is_late(now_ms)

    def is_late(self, now_ms: int) -> bool:
        """The wall time of the run is over."""
        return self.limits.max_wall_ms is not None and now_ms >= self.started_ms + self.limits.max_wall_ms

    def reopen(self) -> None:
        """A blocked run goes on, and one that failed, unless another failure ends it at once."""
        if self.word == "blocked" or (self.word == "failed" and not self.fails_fast()):
            self.word, self.reopened = "running", True

    def fails_fast(self) -> bool:
        """A task has failed, and one failure is enough."""
        return self.pinned.failure_policy == "fail_fast" and any(task.told == "failed" for task in self.tasks.values())
