"""Where what a process sends can go. Records for a topic that is not there, such as that of a pool which nobody has
served yet, are kept aside, so that nothing else waits for it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Protocol

import structlog
from aiokafka.errors import NodeNotReadyError
from aiokafka.protocol.metadata import MetadataRequest

from dagbok.agents.kafka.pool_names import CALL_IT, LEGAL
from dagbok.events.log.kafka_errors import FAILURES

logger = structlog.get_logger(__name__)

MOST_ASIDE: Final = 10_000
"""Records; the oldest topic's go first."""
MOST_TOLD: Final = 1_000
MOST_ASKED: Final = 500
"""Topics in one request."""
KEEP_S: Final = 60.0
"""So long a record waits for its topic. Its scheduler sends it again."""
PATIENCE_S: Final = 2.0
"""So long a topic that is missing may be one that was made just now, of which not every broker has heard."""
SOON_S: Final = 0.2
AGAIN_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Letter:
    """One record. `partition`: none to have the broker's client choose one at random."""

    topic: str
    value: bytes
    partition: int | None = None
    headers: Sequence[tuple[str, bytes]] = ()


class Cluster(Protocol):
    """What a client of aiokafka knows of the topics that it deals with."""

    def partitions_for_topic(self, topic: str) -> set[int] | None: ...


class Answer(Protocol):
    """Of a broker."""

    def to_object(self) -> dict[str, list[dict[str, object]]]: ...


class Client(Protocol):
    """A client of aiokafka, which carries no types."""

    @property
    def cluster(self) -> Cluster: ...

    def get_random_node(self) -> int | None: ...

    async def send(self, node_id: int, request: object) -> Answer: ...

    def add_topic(self, topic: str) -> object: ...

    async def force_metadata_update(self) -> bool: ...


class _Missing:
    """A topic that was not there when it was looked for last, and what waits for it, with the time it came."""

    def __init__(self, now_s: float) -> None:
        self.since_s = self.due_s = now_s
        self.letters: deque[tuple[float, Letter]] = deque()


class Routes:
    """`client`: of who sends. `found` is given what waited for a topic, in its order, once that is there."""

    def __init__(self, client: Client, found: Callable[[Sequence[Letter]], None], now_s: Callable[[], float]) -> None:
        self._client, self._found, self._now_s = client, found, now_s
        self._missing: OrderedDict[str, _Missing] = OrderedDict()
        self._count = 0
        self._fresh = asyncio.Event()
        self._told: OrderedDict[str, None] = OrderedDict()

    def is_there(self, topic: str) -> bool:
        """As far as the client knows."""
        return bool(self._client.cluster.partitions_for_topic(topic))

    def is_open(self, topic: str) -> bool:
        """A record for the topic can be sent at once, and none waits before it."""
        return topic not in self._missing and self.is_there(topic)

    def keep(self, letter: Letter) -> None:
        """Until its topic is there, or for `KEEP_S`."""
        topic, now_s = letter.topic, self._now_s()
        if LEGAL.fullmatch(topic) is None:
            self._tell(topic, f"Kafka allows no topic of this name: {CALL_IT}")
            return
        if topic not in self._missing:
            self._missing[topic] = _Missing(now_s)
            self._fresh.set()
        self._missing[topic].letters.append((now_s, letter))
        self._count += 1
        while self._count > MOST_ASIDE:
            self._drop(next(iter(self._missing)))

    async def run(self) -> None:
        """Look for the topics of what is aside, at once and then again and again, until cancelled."""
        while True:
            due_s = min((missing.due_s for missing in self._missing.values()), default=None)
            try:
                async with asyncio.timeout(None if due_s is None else max(0.0, due_s - self._now_s())):
                    await self._fresh.wait()
            except TimeoutError:
                pass
            self._fresh.clear()
            self._expire()
            try:
                await self._look()
            except FAILURES as error:
                logger.info("queue.topics_not_asked", error=repr(error))

    async def _look(self) -> None:
        now_s = self._now_s()
        due = {topic: missing for topic, missing in self._missing.items() if missing.due_s <= now_s}
        for missing in due.values():
            missing.due_s = now_s + (SOON_S if now_s < missing.since_s + PATIENCE_S else AGAIN_S)
        there = await self._ask([topic for topic in due if not self.is_there(topic)])
        for topic in there:
            self._client.add_topic(topic)
        if there:
            await self._client.force_metadata_update()
        for topic, missing in due.items():
            if self.is_there(topic):
                self._release(topic)
            elif now_s >= missing.since_s + PATIENCE_S:
                self._tell(topic, "attempts in its pool wait: who serves it makes it (dagbok worker --pool …)")

    async def _ask(self, topics: Iterable[str]) -> list[str]:
        """Those that are there. Asking does not create them, as the client's own way may."""
        found: list[str] = []
        rest = iter(topics)
        while some := list(islice(rest, MOST_ASKED)):
            node = self._client.get_random_node()
            if node is None:
                raise NodeNotReadyError("no broker is known")
            answer = await self._client.send(node, MetadataRequest(some, allow_auto_topic_creation=False))
            found += [str(topic["topic"]) for topic in answer.to_object()["topics"] if not topic["error_code"]]
        return found

    def _release(self, topic: str) -> None:
        if topic in self._told:
            del self._told[topic]
            logger.info("queue.topic_found", topic=topic)
        if (missing := self._missing.pop(topic, None)) is not None:
            self._count -= len(missing.letters)
            self._found([letter for _, letter in missing.letters])

    def _expire(self) -> None:
        oldest_s = self._now_s() - KEEP_S
        for topic, missing in tuple(self._missing.items()):
            while missing.letters and missing.letters[0][0] < oldest_s:
                self._drop(topic)

    def _drop(self, topic: str) -> None:
        letters = self._missing[topic].letters
        letters.popleft()
        self._count -= 1
        if not letters:
            del self._missing[topic]

    def _tell(self, topic: str, advice: str) -> None:
        """Once for each topic."""
        if topic not in self._told:
            logger.warning("queue.no_topic", topic=topic, advice=advice)
        self._told[topic] = None
        self._told.move_to_end(topic)
        if len(self._told) > MOST_TOLD:
            self._told.popitem(last=False)
