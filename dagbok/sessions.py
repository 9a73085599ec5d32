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
from dagbok.events.errors import Refused
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


class Sessions(Looking):
    """Questions about sessions; they change nothing, and a worker that goes on with one does not notice them."""

    async def session(
        self,
        run: str,
        task: str,
        *,
        turn: int | None = None,
        tenant: str = DEFAULT_TENANT,
        project: str = DEFAULT_PROJECT,
    ) -> SessionView:
        """The session of a task as its worker put it down last, or after an earlier `turn`: each stays in the log.

        Raises `Refused` (`not_found`) for a run, task or turn that is not there, and for a task whose worker has put
        down nothing; `ArtifactDamaged` or `ArtifactNotFound`; and what `events` raises."""
        wanted, turns = await self._find_turn(run, task, turn, tenant, project)
        value = await asyncio.to_thread(read_session, self._host.reader, Scope(tenant, project), task, wanted)
        return SessionView(task, wanted.turn, wanted.digest, value, turns)

    async def fork(
        self,
        run: str,
        task: str,
        *,
        turn: int | None = None,
        tenant: str = DEFAULT_TENANT,
        project: str = DEFAULT_PROJECT,
    ) -> SessionFork:
        """The session of a task as it is, or after an earlier `turn`, to be the `session` of a `TaskSpec` in the same
        project: its worker goes on from there, and neither knows of the other. Raises what `session` raises, and
        `StorageFailed`."""
        wanted, _ = await self._find_turn(run, task, turn, tenant, project)
        return await asyncio.to_thread(
            fork_session, self._host.reader, Scope(tenant, project), run, task, wanted
        )

    async def _find_turn(
        self, run: str, task: str, turn: int | None, tenant: str, project: str
    ) -> tuple[Session, Sequence[int]]:
        text("task", task)
        if turn is not None:
            whole("turn", turn, least=1)
        async with self._confirmed(run, tenant, project) as found:
            if task not in found.tasks:
                raise Refused(Code.NOT_FOUND, f"run {run} has no task {task!r}")
            end = found.stream_seq
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
