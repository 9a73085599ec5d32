"""Runs of the research example, and what their logs say."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import agent_research
import msgspec

from dagbok import Dagbok, RunResult, TaskSpec
from dagbok.events.run.events import Event, TasksAdded, VerdictRecorded
from tests.support.audit import check_decided, effective_events

TIMEOUT_S = 60.0

E = TypeVar("E", bound=Event)


@dataclass(frozen=True)
class Ran:
    """A run and what its log says."""

    result: RunResult
    events: Sequence[Event]

    def of(self, kind: type[E], goal: str = "") -> list[E]:
        """The events of a kind (of the task with this goal)."""
        added = [entry.spec for event in self.events if isinstance(event, TasksAdded) for entry in event.tasks]
        goals = {spec.id: spec.goal for spec in added}
        return [
            event
            for event in self.events
            if isinstance(event, kind) and (not goal or goals.get(getattr(event, "task", "")) == goal)
        ]

    def diagnostics(self, goal: str = "") -> list[Any]:
        """What failed verdicts said."""
        reports = [event.report for event in self.of(VerdictRecorded, goal)]
        return [msgspec.json.decode(report.diagnostics) for report in reports if report.verdict == "fail"]


async def run_here(folder: Path, task: TaskSpec) -> Ran:
    """One run to its end in this process."""
    async with asyncio.timeout(TIMEOUT_S), Dagbok.embedded(folder, agent_research, projector="none") as dagbok:
        result = await dagbok.run(task, key="one")
        await check_decided(dagbok.host.log)
        return Ran(result, [event for _, event in await effective_events(dagbok.host.log)])
