"""The run as its fold has it, compared with the model."""

from __future__ import annotations

from collections.abc import Sequence

from dagbok.events.run import commands as c
from dagbok.events.run import events as e
from dagbok.projections.task_graph.state import RunState, TaskNode
from tests.property.run_model import SETTLED, Model
from tests.property.run_model_amounts import amount
from tests.property.run_model_effects import proceed, take
from tests.property.run_model_rules import refusals
from tests.property.run_model_task import Task

COUNTED = ("epoch", "failures", "lost", "verifier_errors", "conflicts", "decompositions", "root", "order")


class Checked:
    """A run, followed by the model. `answered` takes each command with its events."""

    def __init__(self, command: c.StartRun, events: Sequence[e.Event], now_ms: int) -> None:
        self.model = Model(command, now_ms)
        proceed(self.model, events, now_ms)

    def answered(self, command: c.RunCommand, events: Sequence[e.Event], now_ms: int, *, right: bool) -> None:
        """The answer is one that the model allows. `right`: the command is well-formed and new, so a refusal has to be
        one that the documents know."""
        assert events, f"{command} has no answer"
        first = events[0]
        if isinstance(first, e.CommandRepeated):
            assert not right or self._is_claimed_by(command)
        elif isinstance(first, e.CommandRefused):
            against = refusals(self.model, command, now_ms) if right else {first.code}
            assert first.code in against, f"{command} was refused as {first.code}; against it: {against or 'nothing'}"
        else:
            against = refusals(self.model, command, now_ms)
            assert not against, f"{command} had to be refused: {against}"
            take(self.model, command, events, now_ms, right=right)
            assert self.model.reopened == any(isinstance(event, e.RunReopened) for event in events)
            for event in events:
                if isinstance(event, e.RunBlocked | e.RunFailed):
                    assert event.code in self.model.codes

    def _is_claimed_by(self, command: c.RunCommand) -> bool:
        task = self.model.tasks.get(command.task) if isinstance(command, c.StartAttempt) else None
        attempt = None if task is None else task.attempt
        return attempt is not None and isinstance(command, c.StartAttempt) and attempt.claim == command.claim

    def agrees(self, run: RunState) -> None:
        """Both tell the same run."""
        model, statuses = self.model, self.model.statuses()
        assert {id: node.status for id, node in run.tasks.items()} == statuses
        assert run.status == model.word
        assert (run.graph_revision, run.limits, run.pinned) == (model.revision, model.limits, model.pinned)
        assert run.status != "blocked" or run.blocked_by in model.codes
        assert amount(run.spent) == model.spent
        assert amount(run.reserved) == model.reserved()
        assert run.artifact_bytes == model.artifact_bytes
        for id, node in run.tasks.items():
            self._agree(model.tasks[id], node, statuses)

    def _agree(self, task: Task, node: TaskNode, statuses: dict[str, str]) -> None:
        assert {name: getattr(node, name) for name in COUNTED} == {name: getattr(task, name) for name in COUNTED}
        assert (node.deps, node.created_by) == (tuple(task.deps), task.parent)
        edges = [self.model.edge(task, dep, statuses[dep]) for dep in task.deps]
        told = (node.open_deps, node.wanted, node.missed)
        assert told == (edges.count("open"), "taken" in edges, "not taken" in edges)
        assert (0 if node.session is None else node.session.turn) == len(task.session)
        last = None if node.session is None else node.session.parts[-1].sha256
        assert last == (task.session[-1].sha256 if task.session else None)
        assert node.status not in ("blocked", "failed") or task.code
        assert (node.attempt is None) == (task.attempt is None)
        if node.attempt is not None and task.attempt is not None:
            held = (node.attempt.kind, node.attempt.claim, node.attempt.lease_until_ms, node.attempt.timeout_at_ms)
            assert held == (
                task.attempt.kind,
                task.attempt.claim,
                task.attempt.lease_until_ms,
                task.attempt.timeout_at_ms,
            )
        if node.status in SETTLED:
            assert node.attempt is None
