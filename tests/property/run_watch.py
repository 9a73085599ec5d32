"""What the events of a run may never say, whatever the state believes: read from the events alone, one after the
other."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from dagbok.events.run import events as e
from dagbok.events.run.values import Limits, Pinned, Report, Spec, Usage

FINAL = (e.RunSucceeded, e.RunCancelled)
NOTHING = (e.CommandRefused, e.CommandRepeated)
MENDS = (
    e.RunAmended,
    e.LimitsSet,
    e.RunReopened,
    e.TaskRetried,
    e.TaskSuperseded,
    e.TaskCancelled,
    e.TasksAdded,
    e.TaskSkipped,
    e.RunSucceeded,
)
"""What may be said of a run that failed: who mends it, and what becomes of it under `fail_fast` without reopening."""
ENDS = (
    e.AttemptReleased,
    e.AttemptClosed,
    e.AttemptLost,
    e.AttemptFailed,
    e.CandidateSubmitted,
    e.DecompositionProposed,
    e.DecompositionAccepted,
    e.DecompositionRefused,
    e.VerdictRecorded,
    e.TaskBlocked,
)
BETWEEN_TRIES = (e.TaskBackedOff, e.TaskFailed, e.TaskVerified)
STOPS = {
    e.TaskVerified: "verified",
    e.TaskSkipped: "skipped",
    e.TaskCancelled: "cancelled",
    e.TaskSuperseded: "superseded",
    e.TaskFailed: "failed",
    e.TaskBlocked: "blocked",
}
MAY_FOLLOW: dict[str, tuple[type[e.Event], ...]] = {
    "cancelled": (e.TaskSuperseded,),
    "failed": (e.TaskRetried, e.TaskSuperseded, e.TaskCancelled),
    "blocked": (e.TaskUnblocked, e.TaskSuperseded, e.TaskCancelled),
}
"""What may be said of a task that stands still."""


class Watch:
    """One run, followed from its first event. `seen` takes the events of each commit."""

    def __init__(self) -> None:
        self.status = ""
        self.revision = 0
        self.limits = Limits()
        self.roots: set[str] = set()
        self.epochs: dict[str, int] = {}
        self.open: dict[str, e.AttemptOpened] = {}
        self.specs: dict[str, Spec] = {}
        self.edges: dict[str, set[str]] = {}
        self.untaken: set[tuple[str, str]] = set()
        self.still: dict[str, str] = {}
        self.tokens, self.cost = 0, Decimal(0)
        self.pinned: Pinned | None = None
        self.staged: dict[str, e.CandidateSubmitted | e.DecompositionProposed] = {}
        self.report: tuple[str, Report] | None = None
        self.inputs: dict[str, str] = {}
        self.verified: dict[str, tuple[str, ...]] = {}

    def seen(self, events: Sequence[e.Event]) -> None:
        """The events of one commit, in their order."""
        assert events, "a commit has events"
        assert len(events) == 1 or not any(isinstance(event, NOTHING) for event in events)
        self.report = None
        for event in events:
            if not isinstance(event, NOTHING):
                self._of_the_run(event)
                self._of_a_task(event)
                self._of_the_graph(event)

    def _of_the_run(self, event: e.Event) -> None:
        assert self.status != "over", f"{event} after the end"
        assert self.status != "failed" or isinstance(event, MENDS), f"{event} in a run that failed"
        opens = isinstance(event, e.AttemptOpened | e.AttemptStarted)
        assert not opens or self.status == "running", f"{event} in a run that is {self.status}"
        if isinstance(event, e.RunStarted):
            self.pinned, self.limits, self.roots = event.pinned, event.limits, set(event.roots)
        elif isinstance(event, e.RunAmended):
            assert event.before == self.pinned != event.pinned
            self.pinned = event.pinned
        elif isinstance(event, e.LimitsSet):
            assert event.before == self.limits
            self.limits = event.limits
        elif isinstance(event, e.RunReopened):
            assert self.status in ("blocked", "failed")
        elif isinstance(event, e.RunBlocked | e.RunFailed):
            assert event.code != "internal_error"
            assert event.tasks or event.code == "budget_exhausted"
        if isinstance(event, e.RunSucceeded | e.RunCancelled | e.RunBlocked | e.RunFailed):
            assert not self.open, "the attempts of a run end before it does"
        if isinstance(event, e.RunSucceeded):
            assert all(self.still.get(root) in ("verified", "skipped") for root in self.roots)
        self.status = _status(event) or self.status

    def _of_a_task(self, event: e.Event) -> None:
        task = getattr(event, "task", None)
        if not isinstance(task, str):
            return
        assert task in self.specs
        still = self.still.get(task)
        assert still is None or isinstance(event, MAY_FOLLOW.get(still, ())), f"{event} of a task that is {still}"
        self.still.pop(task, None)
        if type(event) in STOPS:
            self.still[task] = STOPS[type(event)]
        usage = getattr(event, "usage", None)
        if isinstance(usage, Usage):
            self.tokens, self.cost = self.tokens + usage.tokens, self.cost + Decimal(usage.cost)
        if isinstance(event, e.AttemptOpened):
            self._opened(event)
        elif isinstance(event, ENDS):
            self._ended(task, event)
        elif isinstance(event, e.TaskVerified):
            self._verified(event)
        if isinstance(event, (*BETWEEN_TRIES, *STOPS)):
            assert task not in self.open, f"{event} with an attempt that is open"

    def _opened(self, event: e.AttemptOpened) -> None:
        assert event.task not in self.open, "one attempt of a task at a time"
        assert len(self.open) < self.limits.max_open
        assert event.epoch == self.epochs.get(event.task, 0) + 1, "epochs only grow"
        assert all(self.still.get(dep) in ("verified", "skipped") for dep in self.edges[event.task])
        self.epochs[event.task] = event.epoch
        self.open[event.task] = event
        if event.kind == "verify":
            self.inputs[event.task] = event.input_hash
            assert event.reserved is None
        else:
            self._is_paid_for()

    def _is_paid_for(self) -> None:
        """Work begins within the limits. What it uses may be more than it reserved, and reviews reserve nothing: by
        that much a run may go beyond them."""
        held = [opened.reserved for opened in self.open.values() if opened.reserved is not None]
        tokens = self.tokens + sum(usage.tokens for usage in held)
        cost = self.cost + sum([Decimal(usage.cost) for usage in held])
        assert self.limits.max_tokens is None or tokens <= self.limits.max_tokens
        assert self.limits.max_cost is None or cost <= Decimal(self.limits.max_cost)

    def _ended(self, task: str, event: e.Event) -> None:
        self.open.pop(task, None)
        if isinstance(event, e.CandidateSubmitted | e.DecompositionProposed):
            self.staged[task] = event
        elif isinstance(event, e.VerdictRecorded):
            self.report = task, event.report
        elif isinstance(event, e.DecompositionAccepted):
            assert event.graph_revision == self.revision + 1
            self.revision = event.graph_revision
            self.edges[task] |= {*event.new, *event.reused}
            if event.judge != "structure":
                self._passed(task, event.judge, "decomposition")

    def _of_the_graph(self, event: e.Event) -> None:
        if isinstance(event, e.TasksAdded):
            assert event.graph_revision == max(self.revision, 1)
            self.revision = event.graph_revision
            for entry in event.tasks:
                spec = entry.spec
                assert spec.id not in self.specs
                self.specs[spec.id] = spec
                self.edges[spec.id] = set(spec.depends_on)
                self.untaken |= {(spec.id, dep) for dep in entry.not_taken}
        elif isinstance(event, e.TaskSuperseded):
            assert event.graph_revision == self.revision + 1
            self.revision = event.graph_revision
            for deps in self.edges.values():
                if event.task in deps:
                    deps.symmetric_difference_update((event.task, event.replacement))
            if event.task in self.roots:
                self.roots ^= {event.task, event.replacement}
        elif isinstance(event, e.TaskVerified):
            assert all(event.task in self.edges[id] for id in event.not_taken)
            self.untaken |= {(id, event.task) for id in event.not_taken}
        elif isinstance(event, e.TaskSkipped):
            assert self.edges[event.task]
            led = [self._leads(event.task, dep) for dep in self.edges[event.task]]
            assert not (all(led) if self.specs[event.task].join == "all" else any(led))

    def _leads(self, task: str, dep: str) -> bool:
        still = self.still.get(dep)
        assert still in ("skipped", "verified")
        return still == "verified" and (task, dep) not in self.untaken

    def _verified(self, event: e.TaskVerified) -> None:
        self._passed(event.task, self.specs[event.task].verifier, "candidate")
        staged = self.staged[event.task]
        assert isinstance(staged, e.CandidateSubmitted)
        self.verified[event.task] = tuple(item.sha256 for item in staged.artifacts)

    def _passed(self, task: str, verifier: str, kind: str) -> None:
        """The verdict before, in the same commit, is a pass of the pinned verifier on exactly what is staged."""
        assert self.report is not None
        assert self.pinned is not None
        of, report = self.report
        pin = self.pinned.verifiers[verifier]
        assert (of, report.verdict, report.kind, report.verifier) == (task, "pass", kind, verifier)
        assert (report.version, report.digest, report.assurance) == (pin.version, pin.digest, pin.assurance)
        assert kind in pin.judges
        assert report.input_hash == self.inputs[task]
        staged = self.staged[task]
        bound = staged.subject if isinstance(staged, e.CandidateSubmitted) else (staged.digest,)
        assert report.subject == bound


def _status(event: e.Event) -> str | None:
    if isinstance(event, FINAL):
        return "over"
    if isinstance(event, e.RunStarted | e.RunResumed | e.RunReopened):
        return "running"
    if isinstance(event, e.RunPaused):
        return "paused"
    if isinstance(event, e.RunBlocked):
        return "blocked"
    return "failed" if isinstance(event, e.RunFailed) else None
