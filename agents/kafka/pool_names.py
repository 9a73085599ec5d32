"""Which pools there can be on Kafka: those whose topics Kafka lets be called so."""

from __future__ import annotations

import re
from typing import Final

from dagbok.agents.kafka.names import lane_topic
from dagbok.agents.queue.port import KINDS, lane_of
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput

MAX_CHARS: Final = 249
LEGAL: Final = re.compile(rf"(?!\.{{1,2}}$)[a-zA-Z0-9._-]{{1,{MAX_CHARS}}}", re.ASCII)
"""What Kafka lets a topic be called."""
CALL_IT: Final = "call the pool by letters A-Z a-z, digits, . _ and -"


def pool_topics(prefix: str, pool: str) -> tuple[str, ...]:
    """What its topics are called, whether or not they can be."""
    return tuple(lane_topic(prefix, lane_of(kind, pool)) for kind in KINDS)


def can_be_pool(prefix: str, pool: str) -> bool:
    """Whether the pool can ever have its topics."""
    return bool(pool) and all(LEGAL.fullmatch(topic) for topic in pool_topics(prefix, pool))


def check_pool(prefix: str, pool: str, code: Code = Code.INVALID_SPEC) -> None:
    """Raises `InvalidInput` for a pool that can never have its topics: attempts in it would wait for ever."""
    if not can_be_pool(prefix, pool):
        most = MAX_CHARS - max(map(len, pool_topics(prefix, "")))
        told = f"the pool {pool[:140]!r} cannot be on Kafka: its name is not 1 to {most} of the characters"
        raise InvalidInput(f"{told} A-Z a-z 0-9 . _ -", code=code, advice=f"{CALL_IT}: Kafka takes no others in topics")


def collides(topic: str, other: str) -> bool:
    """Whether Kafka refuses to make one of two topics beside the other: in its metrics `.` and `_` are one."""
    return topic != other and topic.replace(".", "_") == other.replace(".", "_")
