"""What workers have put down of their sessions: as it is, as it was after a turn, and to go on with elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any

from dagbok.agents.workers.reader import ArtifactReader
from dagbok.agents.workers.sessions.operations import encode_part, put, value_of
from dagbok.events.canonical import sha256_hex
from dagbok.events.codes import Code
from dagbok.events.envelope import Input
from dagbok.events.errors import ArtifactDamaged, Refused
from dagbok.events.run.values import MAX_INLINE_BYTES, ArtifactRef, Place
from dagbok.events.specs import SessionFork
from dagbok.looking import Looking
from dagbok.projections.artifacts.scope import Scope
from dagbok.projections.task_graph.sessions import begun
from dagbok.projections.task_graph.state import RunState, Session, TaskNode
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
        async with self._confirmed(run, tenant, project) as found:
            node = _task(found, task)
            last, end = node.session, found.stream_seq
        if last is None:
            raise Refused(Code.NOT_FOUND, f"the worker of task {task} has put down no session")
        turns = await self._turns(run, node, end, tenant, project)
        wanted = turns.get(last.turn if turn is None else turn)
        if wanted is None:
            raise Refused(Code.NOT_FOUND, f"the session of task {task} has no turn {turn}", advice=_known(turns))
        value = await asyncio.to_thread(_value, self._host.reader, Scope(tenant, project), task, wanted)
        return SessionView(task, wanted.turn, wanted.digest, value, sorted(turns))

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
        project: its worker goes on from there, and neither knows of the other. Raises what `session` raises,
        and `StorageFailed`."""
        view = await self.session(run, task, turn=turn, tenant=tenant, project=project)
        part = encode_part([put((), view.value)])
        await asyncio.to_thread(self._host.reader.put, Scope(tenant, project), part)
        return SessionFork(
            run=run, task=task, turn=view.turn, digest=view.digest, sha256=sha256_hex(part), size_bytes=len(part)
        )

    async def _turns(self, run: str, node: TaskNode, end: int, tenant: str, project: str) -> Mapping[int, Session]:
        """The sessions after each turn up to event `end`."""
        session = begun(node.spec)
        turns = {} if session is None else {session.turn: session}
        async with aclosing(self.events(run, tenant=tenant, project=project)) as events:
            async for event in events:
                if event.type == "SessionSuspended" and event.task == node.id:
                    session = _after(session, event.at, event.data)
                    turns[session.turn] = session
                if event.seq >= end:
                    break
        return turns


def _task(run: RunState, task: str) -> TaskNode:
    node = run.tasks.get(task)
    if node is None:
        raise Refused(Code.NOT_FOUND, f"run {run.run} has no task {task!r}")
    return node


def _known(turns: Mapping[int, Session]) -> str:
    return "it has " + ", ".join(map(str, sorted(turns)))


def _after(session: Session | None, at: tuple[int, int, int], data: Mapping[str, Any]) -> Session:
    part = data["part"]
    ref = ArtifactRef(part["name"], part["sha256"], part["size_bytes"], part["media_type"], Place(*at, 0))
    kept = () if session is None else session.parts[: data["keep"]]
    return Session(data["turn"], data["digest"], (*kept, ref), ("", at[1]))


def _value(reader: ArtifactReader, scope: Scope, task: str, session: Session) -> Any:
    return value_of(map(partial(_read, reader, scope, task), session.parts))


def _read(reader: ArtifactReader, scope: Scope, task: str, ref: ArtifactRef) -> bytes:
    """The events of the SDK do not say whether bytes stand in the log: small ones do, unless another program stored
    them."""
    stored = ArtifactRef(ref.name, ref.sha256, ref.size_bytes, ref.media_type)
    if ref.size_bytes <= MAX_INLINE_BYTES:
        try:
            return reader.read(scope, Input(task, ref))
        except ArtifactDamaged:
            return reader.read(scope, Input(task, stored))
    return reader.read(scope, Input(task, stored))
