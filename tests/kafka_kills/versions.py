"""Other versions of the scheduler's code, for rollouts: both run side by side on one cluster."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from dagbok.agents.scheduler import execute
from dagbok.agents.scheduler.decide import By, decide
from dagbok.events import body
from dagbok.events.run import commands as c
from dagbok.events.run import events as e
from dagbok.projections.snapshots import fold
from dagbok.projections.task_graph.state import RunState


def use_version(name: str) -> None:
    """Make this process one of another version; with an empty name, leave it as it is.

    "more-fields": what it writes has a field more in each event than others know. "other-fold": its state has another
    shape, so that snapshots of others say nothing to it. "decides-otherwise": it gives longer leases.
    """
    if name == "more-fields":
        _more_fields()
    elif name == "other-fold":
        fold.FOLD_VERSION = 2  # type: ignore[misc]
    elif name == "decides-otherwise":
        execute.decide = _longer_leases  # type: ignore[attr-defined]
    elif name:
        raise ValueError(f"no version {name}")


def _more_fields() -> None:
    known = body._encode

    def encode(event: e.Event) -> bytes:
        written = known(event)
        return written[:-1] + (b"" if written == b"{}" else b",") + b'"added_later":{"by":"the next version"}}'

    body._encode = encode


def _longer_leases(run: RunState, command: c.RunCommand, by: By) -> Iterator[e.Event]:
    for event in decide(run, command, by):
        if isinstance(event, e.AttemptStarted):
            event = msgspec.structs.replace(event, lease_until_ms=event.lease_until_ms + 700)
        yield event
