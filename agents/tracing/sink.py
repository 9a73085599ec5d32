"""A bounded buffer of finished spans, and the thread that sends them: whoever puts spans in never waits for a
network."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

import structlog

from dagbok.agents.tracing.span import Span

logger = structlog.get_logger(__name__)

BUFFER_SPANS = 2_048
BATCH_SPANS = 512
DELAY_S = 1.0
"""How long a span waits for others before a batch that is not full is sent."""
TOLD_EVERY_S = 60.0
GONE_GRACE_S = 0.5


class SpanSink:
    """Sends spans with `export`, which blocks and says whether they arrived; `stop` interrupts it.

    A receiver that is slow makes `put` say no; one that is gone makes spans drop, which are counted and logged."""

    def __init__(
        self,
        export: Callable[[Sequence[Span]], bool],
        stop: Callable[[], None],
        *,
        buffer_spans: int = BUFFER_SPANS,
        batch_spans: int = BATCH_SPANS,
        delay_s: float = DELAY_S,
    ) -> None:
        self._export, self._stop = export, stop
        self._buffer_spans, self._delay_s = buffer_spans, delay_s
        self._batch_spans = min(batch_spans, buffer_spans)
        self._spans: deque[Span] = deque()
        self._turn = threading.Condition()
        self._loop = asyncio.get_running_loop()
        self._sent = asyncio.Event()
        self._ended = asyncio.Event()
        self._closing = self._given_up = False
        self._told_s = 0.0
        self.failing = False
        self.exported = self.dropped = 0
        self._thread = threading.Thread(target=self._serve, name="dagbok-tracing", daemon=True)
        self._thread.start()

    def put(self, span: Span) -> bool:
        """Take the span, or, while the receiver is gone and the buffer full, drop it. False: there is no room now."""
        with self._turn:
            if len(self._spans) >= self._buffer_spans:
                if not self.failing:
                    return False
                self.dropped += 1
                return True
            self._spans.append(span)
            if len(self._spans) in (1, self._batch_spans):
                self._turn.notify()
        return True

    async def room(self) -> None:
        """Wait until a batch has left, one way or the other."""
        self._sent.clear()
        if len(self._spans) >= self._buffer_spans and not self.failing:
            await self._sent.wait()

    async def close(self, grace_s: float) -> None:
        """Send what is left, for at most `grace_s`, and hardly at all while the receiver is gone. What is left then is
        dropped and counted."""
        with self._turn:
            self._closing = True
            self._turn.notify()
        try:
            async with asyncio.timeout(min(grace_s, GONE_GRACE_S) if self.failing else grace_s):
                await self._ended.wait()
        except TimeoutError:
            with self._turn:
                self._given_up = True
                self.dropped += len(self._spans)
                self._spans.clear()
                self._turn.notify()
        self._stop()
        if self.dropped:
            logger.warning("tracing.dropped", spans=self.dropped, exported=self.exported)

    def _serve(self) -> None:
        while batch := self._next():
            arrived = False
            try:
                arrived = self._export(batch)
            except Exception as error:
                logger.warning("tracing.export_raised", error=str(error), exc_info=error)
            self._count(len(batch), arrived)
            self._tell(self._sent)
        self._tell(self._ended)

    def _next(self) -> list[Span]:
        """The next batch, when it is full or has waited; an empty one at the end."""
        with self._turn:
            while not self._spans and not self._closing:
                self._turn.wait()
            until_s = time.monotonic() + self._delay_s
            while len(self._spans) < self._batch_spans and not self._closing:
                if not self._turn.wait(max(0.0, until_s - time.monotonic())):
                    break
            return [self._spans.popleft() for _ in range(min(len(self._spans), self._batch_spans))]

    def _count(self, spans: int, arrived: bool) -> None:
        with self._turn:
            was_failing, self.failing = self.failing, not arrived
            if arrived:
                self.exported += spans
            else:
                self.dropped += spans
            if self._given_up:
                return
        if arrived and was_failing:
            # As loud as the bad news: whoever read that wants to know.
            logger.warning("tracing.receiver_is_back", dropped=self.dropped)
        elif not arrived and (not was_failing or time.monotonic() - self._told_s > TOLD_EVERY_S):
            self._told_s = time.monotonic()
            logger.warning("tracing.receiver_failed", dropped=self.dropped, why="OTEL_EXPORTER_OTLP_* say where it is")

    def _tell(self, event: asyncio.Event) -> None:
        try:
            self._loop.call_soon_threadsafe(event.set)
        except RuntimeError:
            return  # the loop is closed: nobody waits
