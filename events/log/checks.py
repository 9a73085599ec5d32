"""What every adapter checks before it touches anything, and the one error of a log that is closed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dagbok.events.codes import Code
from dagbok.events.errors import LogError
from dagbok.events.log.port import COMMANDS, EVENTS, Record, Topic

TOPICS: Final[tuple[Topic, ...]] = (COMMANDS, EVENTS)


def check_place(topic: Topic, partition: int, partitions: int) -> None:
    """Raise `ValueError` for a topic or a partition that the log does not have."""
    if topic not in TOPICS or not 0 <= partition < partitions:
        raise ValueError(f"no {topic}[{partition}]: the log has {TOPICS} with {partitions} partition(s) each")


def check_records(records: Sequence[Record]) -> None:
    """Raise `ValueError` for an append of nothing (it would have no offset), and for a key that is not Unicode text."""
    if not records:
        raise ValueError("an append needs at least one record")
    for record in records:
        record.key.encode()


def check_limit(limit: int) -> None:
    """Raise `ValueError` for a read of nothing: its empty answer would mean the end of the partition."""
    if limit < 1:
        raise ValueError(f"a read needs a limit of at least 1, not {limit}")


def log_closed() -> LogError:
    """What a call on a closed log raises. A call that waits when the log is closed raises it too."""
    return LogError("the log is closed", code=Code.INTERNAL_ERROR, advice="open it again")
