"""How a running attempt puts the session of its task down: in the log, or not at all."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

from dagbok.agents.queue.port import attempt_of
from dagbok.agents.workers.holdings import Holdings
from dagbok.agents.workers.reader import ArtifactReader, scope_of
from dagbok.agents.workers.sessions.session import TaskSession
from dagbok.agents.workers.storing import stored
from dagbok.agents.workers.terminal import Terminal
from dagbok.events.canonical import sha256_hex
from dagbok.events.codes import Code
from dagbok.events.envelope import Dispatch, Input
from dagbok.events.errors import Refused
from dagbok.events.run.commands import SuspendSession
from dagbok.events.run.values import MAX_INLINE_BYTES, ArtifactItem, ArtifactRef, Claim

PART_NAME: Final = "session"
PART_MEDIA_TYPE: Final = "application/json"
_HOPELESS: Final = frozenset((Code.BUDGET_EXHAUSTED, Code.INVALID_OUTCOME, Code.ARTIFACT_INTEGRITY, Code.TOO_LARGE))
"""Trying again would only use up the attempts of the task."""


def session_of(
    dispatch: Dispatch, claim: Claim, holdings: Holdings, reader: ArtifactReader, loop: asyncio.AbstractEventLoop
) -> TaskSession:
    """The session of the task, for the attempt that runs on `loop` under this claim. Any thread.

    It does not know what holds the attempt, which knows the context that has it: such a circle would keep everything
    of every attempt until the collector comes."""
    scope, task = scope_of(dispatch), dispatch.task

    def read(ref: ArtifactRef) -> bytes:
        return reader.read(scope, Input(task, ref))

    session = TaskSession(dispatch.session, read, partial(_put_down, dispatch, claim, holdings, reader))
    session.belongs_to(loop)
    return session


async def _put_down(
    dispatch: Dispatch, claim: Claim, holdings: Holdings, reader: ArtifactReader, turn: int, keep: int, part: bytes
) -> None:
    inline = part if len(part) <= MAX_INLINE_BYTES else None
    if inline is None:
        await stored(holdings, attempt_of(dispatch), lambda: reader.put(scope_of(dispatch), part), is_large=True)
    item = ArtifactItem(PART_NAME, sha256_hex(part), len(part), PART_MEDIA_TYPE, inline)
    command = SuspendSession(dispatch.task, dispatch.epoch, claim, turn, item, keep)
    answer = await holdings.tell(dispatch, command)
    if answer.accepted:
        return
    if answer.code in _HOPELESS:
        raise Terminal(f"the session cannot be put down: {answer.reason}")
    raise Refused(Code(str(answer.code)), answer.reason, advice=answer.advice)
