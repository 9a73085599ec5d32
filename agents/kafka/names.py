"""What topics and groups are called (`docs/design/architecture.md`, section 3.1)."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from dagbok.agents.queue.port import Lane

TOPIC_OF: Final = {"work": "work", "verify": "review"}


def lane_topic(prefix: str, lane: Lane) -> str:
    """Where the attempts of a lane travel."""
    kind, pool = lane
    return f"{prefix}{TOPIC_OF[kind]}.{pool}"


def replies_topic(prefix: str) -> str:
    """Where answers and hints travel."""
    return f"{prefix}replies"


def lane_group(prefix: str, lane: Lane) -> str:
    """The group of those who serve a lane, called as its topic. One of its own for each: who only verifies is no member
    where work goes."""
    return lane_topic(prefix, lane)


def scheduler_group(prefix: str) -> str:
    """The group of those who decide."""
    return f"{prefix}scheduler"


def projector_group(prefix: str) -> str:
    """The group of those who write the tables."""
    return f"{prefix}projector"


def reply_partition(address: str, partitions: int) -> int:
    """Where the replies to an address are: who listens there reads that partition. By the last part of the address: all
    that is for one process, whatever for, is in one partition, and so is all that concerns one pool."""
    name = address.rpartition("/")[2]
    return int.from_bytes(sha256(name.encode()).digest()[:8], "big") % partitions
