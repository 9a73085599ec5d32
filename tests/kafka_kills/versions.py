"""Other versions of the code, for rollouts: both run side by side on one cluster; and one that falls asleep."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from itertools import count

import msgspec

from dagbok.agents.scheduler import execute, owner
from dagbok.agents.scheduler.decide import By, decide
from dagbok.agents.workers import attempts
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


def sleep_at(where: str) -> None:
    """Have this process stop itself at a place of `faultpoints` (`place:times`) until somebody sends SIGCONT."""
    name, _, times = where.partition(":")
    numbers = count(1)

    def reach(place: str) -> None:
        if place == name and next(numbers) == int(times):
            os.kill(os.getpid(), signal.SIGSTOP)

    if name:
        owner.reach = reach  # type: ignore[attr-defined]
        attempts.reach = reach  # type: ignore[attr-defined]
