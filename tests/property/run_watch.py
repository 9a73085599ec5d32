"""What the events of a run may never say, whatever the state believes: read from the events alone, one after the
other."""

from __future__ import annotations

from collections.abc import Sequence

from dagbok.events.run import events as e
from dagbok.events.run.values import Pinned, Report, Spec

FINAL = (e.RunSucceeded, e.RunCancelled, e.RunFailed)
NOTHING = (e.CommandRefused, e.CommandRepeated)
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


class Watch:
    """One run, followed from its first event. `seen` takes the events of each commit."""

    def __init__(self) -> None:
        self.over = False
        self.revision = 0
        self.epochs: dict[str, int] = {}
        self.open: set[str] = set()
        self.specs: dict[str, Spec] = {}
        self.pinned: Pinned | None = None
        self.staged: dict[str, e.CandidateSubmitted | e.DecompositionProposed] = {}
        self.review_inputs: dict[str, str] = {}
        self.report: tuple[str, Report] | None = None
        self.verified: dict[str, tuple[str, ...]] = {}

    def seen(self, events: Sequence[e.Event]) -> None:
        """The events of one commit, in their order."""
        assert events, "a commit has events"
        assert len(events) == 1 or not any(isinstance(event, NOTHING) for event in events)
        self.report = None
        for event in events:
            assert not self.over or isinstance(event, NOTHING), f"{event} after the end"
            self._task_is_open(event)
            self._one(event)
            self.over = self.over or isinstance(event, FINAL)

    def _one(self, event: e.Event) -> None:
        if isinstance(event, e.RunStarted):
            self.pinned = event.pinned
        elif isinstance(event, e.TasksAdded):
            assert event.graph_revision > self.revision or event.graph_revision == self.revision > 1
            self.revision = event.graph_revision
            for entry in event.tasks:
                assert entry.spec.id not in self.specs
                self.specs[entry.spec.id] = entry.spec
        elif isinstance(event, e.AttemptOpened):
            self._opened(event)
        elif isinstance(event, ENDS):
            self._ended(event)
        elif isinstance(event, e.TaskVerified):
            self._verified(event)

    def _task_is_open(self, event: e.Event) -> None:
        task = getattr(event, "task", None)
        assert task not in self.verified, f"{event} of a verified task"

    def _opened(self, event: e.AttemptOpened) -> None:
        assert event.task not in self.open, "one attempt of a task at a time"
        assert event.epoch == self.epochs.get(event.task, 0) + 1, "epochs only grow"
        self.epochs[event.task] = event.epoch
        self.open.add(event.task)
        if event.kind == "verify":
            self.review_inputs[event.task] = event.input_hash

    def _ended(self, event: e.Event) -> None:
        task: str = getattr(event, "task")  # noqa: B009  one of ENDS
        self.open.discard(task)
        if isinstance(event, e.CandidateSubmitted | e.DecompositionProposed):
            self.staged[task] = event
        elif isinstance(event, e.VerdictRecorded):
            self.report = task, event.report
        elif isinstance(event, e.DecompositionAccepted):
            assert event.graph_revision == self.revision + 1
            self.revision = event.graph_revision
            if event.judge != "structure":
                self._passed(task, self.specs[task].proposal_verifier or self.specs[task].verifier, "decomposition")

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
        assert report.input_hash == self.review_inputs[task]
        staged = self.staged[task]
        bound = staged.subject if isinstance(staged, e.CandidateSubmitted) else (staged.digest,)
        assert report.subject == bound
