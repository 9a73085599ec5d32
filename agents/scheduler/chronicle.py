"""One log line per decision worth reading, told when it is confirmed. Everything else is in the log itself."""

from __future__ import annotations

from typing import Final

import structlog

from dagbok.agents.scheduler.handle import Decided
from dagbok.events.run import events as e

logger = structlog.get_logger(__name__)

TOLD: Final[dict[type[e.Event], tuple[str, ...]]] = {
    e.RunStarted: (),
    e.RunPaused: ("reason",),
    e.RunResumed: ("reason",),
    e.RunReopened: ("reason",),
    e.RunSucceeded: (),
    e.RunFailed: ("code", "tasks"),
    e.RunBlocked: ("code", "tasks"),
    e.RunCancelled: ("reason",),
    e.LimitsSet: (),
    e.RunAmended: ("reason",),
    e.DecompositionAccepted: ("task", "judge", "graph_revision"),
    e.DecompositionRefused: ("task", "code", "reason"),
    e.TaskBlocked: ("task", "code", "reason"),
    e.TaskUnblocked: ("task", "note"),
    e.TaskFailed: ("task", "code", "reason"),
    e.TaskRetried: ("task", "note"),
    e.TaskSuperseded: ("task", "replacement"),
    e.TaskCancelled: ("task", "reason"),
    e.AttemptLost: ("task", "epoch", "code"),
    e.AttemptUnserved: ("task", "epoch", "process"),
    e.CommandRefused: ("code", "reason"),
}
"""Which events are told, and what of them."""

WORRYING: Final = (e.RunFailed, e.RunBlocked, e.TaskBlocked, e.TaskFailed, e.AttemptLost, e.AttemptUnserved)


def tell(decided: Decided) -> None:
    """The lines of one confirmed commit, with its ids."""
    for event in decided.events:
        fields = TOLD.get(type(event))
        if fields is None or (isinstance(event, e.TaskCancelled) and event.cause != "requested"):
            continue  # with a task go all that were created below it: one line for them, not ten thousand
        seal = decided.commit.seal
        write = logger.warning if isinstance(event, WORRYING) else logger.info
        write(
            type(event).__name__,
            stream=seal.stream,
            tenant=seal.tenant,
            project=seal.project,
            command=seal.command_type,
            command_id=seal.command_id,
            actor=seal.actor,
            at=f"{seal.partition}:{decided.commit.offset}",
            **{field: getattr(event, field) for field in fields},
        )
