"""Run a decider: fold each event into the state before it goes on (see `decide/__init__.py`)."""

from __future__ import annotations

from dagbok.agents.scheduler.decide import By, Repeated, decide
from dagbok.events.errors import Refused
from dagbok.events.run.commands import RunCommand
from dagbok.events.run.events import Event
from dagbok.projections.task_graph.evolve import evolve
from dagbok.projections.task_graph.state import At, RunState


class StateBroken(Exception):
    """Deciding or folding failed half-way: the state is worth nothing now and has to be folded anew from the log."""


def execute(run: RunState, command: RunCommand, by: By, partition: int, offset: int) -> list[Event]:
    """The events of `command`, folded into `run`, as they will stand in the commit at `offset`.

    Raises `Refused` or `Repeated` with the state untouched, and `StateBroken` (from its cause) when anything else
    happens.
    """
    events: list[Event] = []
    try:
        for event in decide(run, command, by):
            evolve(run, event, At(partition, offset, len(events), by.now_ms, by.command_id))
            events.append(event)
    except (Refused, Repeated) as answer:
        if events:
            raise StateBroken(f"{type(command).__name__} was refused after its first event") from answer
        raise
    except Exception as error:
        raise StateBroken(f"{type(command).__name__} failed: {error!r}") from error
    return events
