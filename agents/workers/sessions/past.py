"""Sessions as they were after any turn, from what the events of a run tell of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import msgspec

from dagbok.agents.workers.reader import ArtifactReader
from dagbok.agents.workers.sessions.operations import encode_part, unread_value_of, value_of, whole
from dagbok.events.canonical import sha256_hex
from dagbok.events.codes import Code
from dagbok.events.envelope import Input
from dagbok.events.errors import ArtifactDamaged, Refused
from dagbok.events.run.values import MAX_INLINE_BYTES, ArtifactRef, Place, SessionSeed
from dagbok.events.specs import SessionFork
from dagbok.projections.artifacts.scope import Scope
from dagbok.projections.task_graph.sessions import begun_with
from dagbok.projections.task_graph.state import Session

Told = tuple[str, str | None, tuple[int, int, int], Mapping[str, Any]]
"""Type and task of an event, its place in the log (partition, offset, index), and its data, without bytes."""


def turns_of(task: str, events: Iterable[Told]) -> dict[int, Session]:
    """The session of a task after each of its turns, from the events of its run in their order."""
    session: Session | None = None
    turns: dict[int, Session] = {}
    for type, of, at, data in events:
        if type == "TasksAdded" and (seed := _seed(task, data)) is not None:
            session = begun_with(seed)
        elif type == "SessionSuspended" and of == task:
            session = _after(session, at, data)
        else:
            continue
        turns[session.turn] = session
    return turns


def turn_of(task: str, turns: Mapping[int, Session], turn: int | None) -> Session:
    """The session after a turn, or the last one. Raises `Refused` (`not_found`), which says what there is."""
    if not turns:
        told = f"task {task} has no session: its worker has put none down"
        raise Refused(Code.NOT_FOUND, told, advice="nothing is wrong, unless it was to keep one")
    wanted = turns.get(max(turns) if turn is None else turn)
    if wanted is None:
        known = f"it has {min(turns)} to {max(turns)}"
        raise Refused(Code.NOT_FOUND, f"the session of task {task} has no turn {turn}", advice=known)
    return wanted


def read_session(reader: ArtifactReader, scope: Scope, task: str, session: Session) -> Any:
    """What its worker had put down. Blocks. Raises `ArtifactDamaged`, `ArtifactNotFound`, or `InvalidInput` for parts
    of a later version."""
    return value_of(_parts(reader, scope, task, session))


def fork_session(reader: ArtifactReader, scope: Scope, run: str, task: str, session: Session) -> SessionFork:
    """The session in one part of its own in the store. Blocks. Raises what `read_session` raises, and
    `StorageFailed`."""
    part = encode_part(whole(unread_value_of(_parts(reader, scope, task, session))))
    reader.put(scope, part)
    return SessionFork(
        run=run, task=task, turn=session.turn, digest=session.digest, sha256=sha256_hex(part), size_bytes=len(part)
    )


def _parts(reader: ArtifactReader, scope: Scope, task: str, session: Session) -> Iterable[bytes]:
    return map(partial(_read, reader, scope, task), session.parts)


def _seed(task: str, data: Mapping[str, Any]) -> SessionSeed | None:
    for entry in data["tasks"]:
        if entry["spec"]["id"] == task and entry["spec"].get("session") is not None:
            return msgspec.convert(entry["spec"]["session"], SessionSeed)
    return None


def _after(session: Session | None, at: tuple[int, int, int], data: Mapping[str, Any]) -> Session:
    part = data["part"]
    ref = ArtifactRef(part["name"], part["sha256"], part["size_bytes"], part["media_type"], Place(*at, 0))
    kept = () if session is None else session.parts[: data["keep"]]
    return Session(data["turn"], data["digest"], (*kept, ref), ("", at[1]))


def _read(reader: ArtifactReader, scope: Scope, task: str, ref: ArtifactRef) -> bytes:
    """Events without bytes do not say whether the log has them: small ones it has, unless another program stored
    them."""
    stored = ArtifactRef(ref.name, ref.sha256, ref.size_bytes, ref.media_type)
    if ref.place is not None and ref.size_bytes <= MAX_INLINE_BYTES:
        try:
            return reader.read(scope, Input(task, ref))
        except ArtifactDamaged:
            return reader.read(scope, Input(task, stored))
    return reader.read(scope, Input(task, stored))
