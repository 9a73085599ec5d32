"""The base of all events."""

from __future__ import annotations

from typing import ClassVar

from dagbok.events.run.values import Value


class Event(Value, frozen=True):
    """Base of all events; the class name is the `type` in the body of a commit."""

    version: ClassVar[int] = 1
