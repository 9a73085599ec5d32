"""A run as the log tells it: what is verified, by whom, and whether anything twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from dagbok.events.body import decode_body
from dagbok.events.ids import partition_of, run_stream
from dagbok.events.log.kafka import KafkaLog
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.log.port import EVENTS
from dagbok.events.rule import GENESIS
from dagbok.events.run import events as e
from dagbok.projections.reading import read_effective

READ_COMMITS = 500
ENDS = {e.RunSucceeded: "succeeded", e.RunFailed: "failed", e.RunCancelled: "cancelled", e.RunBlocked: "is blocked"}


class RunLog:
    """`open` it and `step`. `children`: tasks that the first one decomposed into; `verified` with the first one;
    `twice`: how many more than once; `by_worker`: whose results were verified; `ended`: in which status, if it has."""

    def __init__(self, log: KafkaLog, run: str, names: Mapping[str, str]) -> None:
        """Use `open`."""
        self._log, self._stream, self._names = log, run_stream(run), names
        self._partition, self._position = partition_of(self._stream, log.partitions), GENESIS
        self._submitted: dict[str, str] = {}
        self._verified: Counter[str] = Counter()
        self.children = 0
        self.by_worker: Counter[str] = Counter()
        self.ended: str | None = None

    @classmethod
    async def open(cls, settings: KafkaSettings, run: str, names: Mapping[str, str]) -> RunLog:
        """`names`: how processes are called, by their names in the log."""
        return cls(await KafkaLog.open(settings), run, names)

    @property
    def verified(self) -> int:
        return len(self._verified)

    @property
    def twice(self) -> int:
        return sum(count > 1 for count in self._verified.values())

    async def until(self, holds: Callable[[], bool]) -> None:
        """Step until it holds."""
        while not holds():
            await self.step()

    async def step(self) -> None:
        """Read on, and wait for something to read."""
        self._position, commits = await read_effective(self._log, self._partition, self._position, READ_COMMITS)
        for commit in commits:
            if commit.seal.stream == self._stream:
                for event in decode_body(commit.stored_body, commit.seal.codec, commit.seal.raw_size):
                    self._take(event)
        if not commits and self.ended is None:
            await self._log.wait(EVENTS, self._partition, self._position.next_offset)

    async def close(self) -> None:
        """Let go."""
        await self._log.close()

    def _take(self, event: e.Event) -> None:
        if isinstance(event, e.DecompositionAccepted):
            self.children += len(event.new)
        elif isinstance(event, e.CandidateSubmitted):
            self._submitted[event.task] = event.claim.process
        elif isinstance(event, e.TaskVerified):
            self._verified[event.task] += 1
            process = self._submitted.get(event.task, "")
            self.by_worker[self._names.get(process, "somebody else")] += 1
        elif type(event) in ENDS:
            self.ended = ENDS[type(event)]
