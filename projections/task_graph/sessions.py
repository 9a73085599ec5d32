"""Folds of the events about sessions."""

from __future__ import annotations

from dagbok.events.run import events as e
from dagbok.events.run.values import ArtifactRef, SessionSeed, Spec
from dagbok.events.session import session_digest
from dagbok.projections.task_graph.refs import staged_ref
from dagbok.projections.task_graph.state import At, RunState, Session


def begun(spec: Spec) -> Session | None:
    """The session that a new task has, if it goes on with that of another."""
    return None if spec.session is None else begun_with(spec.session)


def begun_with(seed: SessionSeed) -> Session:
    """What a session begins as that goes on with another."""
    part = ArtifactRef("session", seed.sha256, seed.size_bytes, "application/json")
    return Session(seed.turn, session_digest(seed.digest, 0, seed.sha256), (part,), ("", -1))


def session_suspended(run: RunState, event: e.SessionSuspended, at: At) -> None:
    """The session is what its worker has put down last."""
    node = run.tasks[event.task]
    kept = () if node.session is None else node.session.parts[: event.keep]
    parts = (*kept, staged_ref(event.part, at, 0))
    node.session = Session(event.turn, event.digest, parts, (at.command_id, at.offset))
    run.artifact_bytes += event.part.size_bytes
