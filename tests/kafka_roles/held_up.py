"""`dagbok` with something that takes long: `python -m tests.kafka_roles.held_up WHAT PIPE ARGUMENTS…`.

`snapshot`: the first snapshot has its parts written, says so on standard error, and is not finished before somebody
opens PIPE for writing. `rebalance`: the first rebalance that would take a partition away says so, and this process
never goes on with it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

from aiokafka import TopicPartition

from dagbok.agents.kafka import group, scheduler
from dagbok.agents.kafka.process import KafkaProcess
from dagbok.cli import main


def say(words: str) -> None:
    """On standard error, beside the log."""
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()


def hold_snapshot(pipe: str) -> None:
    """A snapshot is due with every batch."""
    numbers = count()

    def reach(place: str) -> None:
        if next(numbers) == 0:
            say("the snapshot is written")
            Path(pipe).open().close()

    scheduler.reach = reach  # type: ignore[attr-defined]
    assert KafkaProcess.schedule.__kwdefaults__
    KafkaProcess.schedule.__kwdefaults__["snapshot_bytes"] = 1


def hold_rebalance(_pipe: str) -> None:
    """Where the client tells that it begins."""

    async def revoked(_listener: group._Listener, places: list[TopicPartition]) -> None:
        if places:
            say("the rebalance has begun")
            await asyncio.Event().wait()

    group._Listener.on_partitions_revoked = revoked  # type: ignore[method-assign, assignment]


HOLD: dict[str, Callable[[str], None]] = {"snapshot": hold_snapshot, "rebalance": hold_rebalance}

if __name__ == "__main__":
    what, pipe, *arguments = sys.argv[1:]
    HOLD[what](pipe)
    sys.exit(main(arguments))
