"""What is remembered of spans that have not ended: only what their end needs, and nothing of tasks that are done."""

from __future__ import annotations

from decimal import Decimal

import msgspec

from dagbok.agents.tracing.span import MAX_NOTES, AttributeValue, Note
from dagbok.events.run.values import AttemptKind, Phase, Usage
from dagbok.events.traceparent import Parent


class OpenAttempt(msgspec.Struct, gc=False):
    """An attempt between its opening and its end."""

    epoch: int
    kind: AttemptKind
    phase: Phase
    pool: str
    key: str
    opened_ms: int
    claimed_ms: int | None = None
    process: str = ""
    notes: tuple[Note, ...] = ()


class OpenTask(msgspec.Struct, gc=False):
    """A task in one part of its life: from its creation, or from going on after an end, to its end. `supersedes`: the
    span of the task that it replaces."""

    created_by: str | None
    worker: str
    verifier: str
    start_ms: int
    part: int = 0
    supersedes: int | None = None
    attempt: OpenAttempt | None = None
    notes: tuple[Note, ...] = ()
    unnoted: int = 0


class EndedTask(msgspec.Struct, frozen=True, gc=False):
    """A task whose span has ended, but which may go on: it failed, or it was `open` when its run failed."""

    created_by: str | None
    worker: str
    verifier: str
    part: int
    open: bool

    def again(self, now_ms: int) -> OpenTask:
        """The next part of its life."""
        return OpenTask(self.created_by, self.worker, self.verifier, now_ms, self.part + 1)


class OpenRun(msgspec.Struct):
    """A run in one part of its life. `tasks`: those that are open. `closed`: it failed, and may be reopened. `callers`:
    the spans in which this part was asked for."""

    run: str
    tenant: str
    project: str
    trace_id: int
    start_ms: int
    callers: tuple[Parent, ...] = ()
    part: int = 0
    closed: bool = False
    tasks: dict[str, OpenTask] = {}
    ended: dict[str, EndedTask] = {}
    notes: tuple[Note, ...] = ()
    unnoted: int = 0
    task_count: int = 0
    tokens: int = 0
    cost: Decimal = Decimal(0)

    def charge(self, usage: Usage) -> None:
        """Add to what the run has used."""
        self.tokens += usage.tokens
        if usage.cost != "0":
            self.cost += Decimal(usage.cost)


def note(span: OpenRun | OpenTask, name: str, at_ms: int, **attributes: AttributeValue) -> None:
    """Something that happened within the span; above `MAX_NOTES` it is only counted."""
    if len(span.notes) >= MAX_NOTES:
        span.unnoted += 1
        return
    named: dict[str, AttributeValue] = {f"dagbok.{key}": plain(value) for key, value in attributes.items()}
    span.notes = (*span.notes, Note(f"dagbok.{name}", at_ms, named))


def plain(value: AttributeValue) -> AttributeValue:
    """A code in an event that was just decided is a word of an enumeration; read from the log it is text."""
    return str(value) if isinstance(value, str) else value
