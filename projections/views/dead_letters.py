"""The view of dead letters: commands that could not be decoded or handled, and were refused for that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from dagbok.events.run.events import CommandRefused
from dagbok.projections.tables.rows import Row
from dagbok.projections.tables.session import Session
from dagbok.projections.views.view import Told


class DeadLetterRow(Row):
    """A command that nobody here could make sense of, or that broke what decided it. `tenant` and `project` are what it
    said of itself, and empty when not even its envelope could be read.

    (`log_partition`, `command_offset`) is its place in `commands`, `log_offset` that of its refusal in `events`: its
    bytes stand there. `command_hash` is the SHA-256 of the whole command: the same letter, sent again, has the same.
    """

    table: ClassVar[str] = "dead_letters"
    key: ClassVar[tuple[str, ...]] = ("log_partition", "command_offset")

    log_partition: int
    command_offset: int
    log_offset: int
    now_ms: int
    code: str
    reason: str
    actor: str
    command_type: str
    command_id: str
    command_hash: str


class DeadLettersView:
    """One row per `CommandRefused` that keeps the bytes of its command."""

    name: Final = "dead_letters"
    layout: Final = 1
    rows: Final = (DeadLetterRow,)

    def write(self, session: Session, batch: Sequence[Told]) -> None:
        """Insert the dead letters of the batch."""
        session.insert(
            [
                _row(told, event)
                for told in batch
                for event in told.events
                if type(event) is CommandRefused and event.raw is not None
            ]
        )


def _row(told: Told, event: CommandRefused) -> DeadLetterRow:
    seal = told.commit.seal
    return DeadLetterRow(
        tenant=seal.tenant,
        project=seal.project,
        log_partition=seal.partition,
        command_offset=seal.command_offset,
        log_offset=told.commit.offset,
        now_ms=seal.now_ms,
        code=event.code,
        reason=event.reason,
        actor=seal.actor,
        command_type=seal.command_type,
        command_id=seal.command_id,
        command_hash=seal.command_hash,
    )
