"""What workers have put down of their sessions: as it is, as it was after a turn, and to go on with elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from dagbok.agents.workers.sessions.past import Told, fork_session, read_session, turn_of, turns_of
from dagbok.events.arguments import text, whole
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput, Refused
from dagbok.events.specs import SessionFork
from dagbok.looking import Looking
from dagbok.projections.artifacts.scope import Scope
from dagbok.projections.task_graph.state import Session
from dagbok.steering import DEFAULT_PROJECT, DEFAULT_TENANT


@dataclass(frozen=True)
class SessionView:
    """A session after a turn. `value`: what its worker put down, JSON; `digest` names it and all that led to it.
    `turns`: those that can be looked at."""

    task: str
    turn: int
    digest: str
    value: Any
    turns: Sequence[int]


def one_of(turn: int | None, event: int | None) -> None:
    """Refuse both at once. Raises `InvalidInput` (`usage`)."""
    if turn is not None and event is not None:
        raise InvalidInput("a turn and an event say when twice", code=Code.USAGE, advice="give one of them")


def reached(run: str, event: int, last: int) -> int:
    """The event, if the run has it. Raises `Refused` (`not_found`), which says what there is."""
    if event > last:
        raise Refused(Code.NOT_FOUND, f"run {run} has no event {event}", advice=f"it has 1 to {last}")
    return event


class Sessions(Looking):
    """Questions about sessions; they change nothing, and a worker that goes on with one does not notice them."""

    async def session(
        self,
        run: str,
        task: str,
        *,
        turn: int | None = None,
        event: int | None = None,
        tenant: str = DEFAULT_TENANT,
        project: str = DEFAULT_PROJECT,
    ) -> SessionView:
        """The session of a task as its worker put it down last, or after an earlier `turn`: each stays in the log.
        `event`: as it was when the run had that event (`RunEvent.seq`); `turns` are then those until there.

        Raises `Refused` (`not_found`) for a run, task, turn or event that is not there, and for a task whose worker has
        put down nothing until there; `InvalidInput` (`usage`) for both a turn and an event;
        `ArtifactDamaged` or `ArtifactNotFound`; and what `events` raises."""
        wanted, turns = await self._find_turn(run, task, turn, event, tenant, project)
        value = await asyncio.to_thread(read_session, self._host.reader, Scope(tenant, project), task, wanted)
        return SessionView(task, wanted.turn, wanted.digest, value, turns)

    async def fork(
        self,
        run: str,
        task: str,
        *,
        turn: int | None = None,
        event: int | None = None,
        tenant: str = DEFAULT_TENANT,
        project: str = DEFAULT_PROJECT,
    ) -> SessionFork:
        """The session of a task as it is, or after an earlier `turn` or `event`, to be the `session` of a `TaskSpec` in
        the same project: its worker goes on from there, and neither knows of the other. Raises what `session` raises,
        and `StorageFailed`."""
        wanted, _ = await self._find_turn(run, task, turn, event, tenant, project)
        return await asyncio.to_thread(
            fork_session, self._host.reader, Scope(tenant, project), run, task, wanted
        )

    async def _find_turn(
        self, run: str, task: str, turn: int | None, event: int | None, tenant: str, project: str
    ) -> tuple[Session, Sequence[int]]:
        text("task", task)
        if turn is not None:
            whole("turn", turn, least=1)
        if event is not None:
            whole("event", event, least=1)
            one_of(turn, event)
        async with self._confirmed(run, tenant, project) as found:
            if task not in found.tasks:
                raise Refused(Code.NOT_FOUND, f"run {run} has no task {task!r}")
            end = found.stream_seq
        if event is not None:
            end = reached(run, event, end)
        turns = turns_of(task, await self._told(run, end, tenant, project))
        return turn_of(task, turns, turn), sorted(turns)

    async def _told(self, run: str, end: int, tenant: str, project: str) -> Sequence[Told]:
        """The events of the run up to number `end`."""
        told: list[Told] = []
        async with aclosing(self.events(run, tenant=tenant, project=project)) as events:
            async for event in events:
                told.append((event.type, event.task, event.at, event.data))
                if event.seq >= end:
                    break
        return told
