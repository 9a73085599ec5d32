"""The events of one run, read from the log alone: for a process that has no tables."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from dagbok.agents.hosting.one_run import Source, position_before
from dagbok.agents.hosting.watching import Committed
from dagbok.events.body import decode_body
from dagbok.events.commit import Commit
from dagbok.events.rule import Position
from dagbok.projections.reading import read_effective

READ_RECORDS = 1_000


class LogHistory:
    """The commits of a run that have its events above a number. Reads its partition from the newest snapshot before
    that number, or from the start: of other runs the seals alone, since they decide what counts."""

    def __init__(self, source: Source, stream: str, after: int) -> None:
        self._source, self._stream, self._after = source, stream, after
        self._position: Position | None = None

    async def more(self) -> Sequence[Committed]:
        """The next commits; empty at the end of the log. Raises what reading it raises."""
        if self._position is None:
            self._position = await asyncio.to_thread(position_before, self._source, self._stream, self._after)
        while True:
            position, commits = await read_effective(
                self._source.log, self._source.partition, self._position, READ_RECORDS
            )
            at_end, self._position = position == self._position, position
            wanted = [commit for commit in commits if self._has_news(commit)]
            if wanted:
                return await asyncio.to_thread(lambda found: list(map(_decoded, found)), wanted)
            if at_end:
                return ()
            await asyncio.sleep(0)

    def _has_news(self, commit: Commit) -> bool:
        seal = commit.seal
        return seal.stream == self._stream and seal.stream_seq + seal.count - 1 > self._after


def _decoded(commit: Commit) -> Committed:
    seal = commit.seal
    return Committed(seal, commit.offset, decode_body(commit.stored_body, seal.codec, seal.raw_size))
