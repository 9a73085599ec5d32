"""A lane that this process serves: a member of the lane's group, hosted by Faust, which reads the lane's topic."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path

import faust
import msgspec
import structlog
from faust.streams import Stream
from faust.types import EventT, StreamT
from msgspec.structs import replace

from dagbok.agents.kafka.faust_app import new_app
from dagbok.agents.kafka.faust_transport import let_go
from dagbok.agents.kafka.lane import LaneIntake
from dagbok.agents.kafka.names import lane_group, lane_topic
from dagbok.agents.kafka.parcels import Parcels, Unavailable
from dagbok.agents.queue.port import Lane
from dagbok.events.errors import DagbokError, LogError
from dagbok.events.log.kafka_errors import FAILURES, explain
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.traceparent import TRACEPARENT
from dagbok.projections.patience import patiently

logger = structlog.get_logger(__name__)


class LaneReader:
    """`intake`: takes what comes; `parcels`: opens it; `on_garbage`: told of records that are no dispatches of the
    lane; `scratch`: a folder that Faust may use."""

    def __init__(
        self,
        settings: KafkaSettings,
        lane: Lane,
        intake: LaneIntake,
        parcels: Parcels,
        on_garbage: Callable[[str, Exception], None],
        *,
        session_s: float,
        scratch: Path,
    ) -> None:
        self._settings, self._session_s, self._scratch = settings, session_s, scratch
        self._lane, self._intake, self._parcels, self._on_garbage = lane, intake, parcels, on_garbage
        self._app = self._new_app()
        self.joined = False
        """Whether it takes part."""
        self.garbage = 0
        """Records that were no dispatches of the lane."""

    @property
    def partitions(self) -> frozenset[int]:
        """What the group has given to this process."""
        return frozenset(place.partition for place in self._app.consumer.assignment()) if self.joined else frozenset()

    async def run(self) -> None:
        """Serve until cancelled, then leave the group. While no broker answers at the start, waits for one. Raises what
        makes Faust give up later: a process that is up and reads nothing would be of no use to anybody."""
        await patiently(self._start, self._waits)
        try:
            self.joined = True
            await self._app.wait_until_stopped()
        finally:
            await _surely(self._app.stop())
        raise LogError(f"the reader of {self._name} ended: {self._app.crash_reason!r}")

    async def _start(self) -> None:
        starting = asyncio.ensure_future(self._app.start())
        try:
            await asyncio.shield(starting)
        except BaseException as error:
            await _surely(self._give_up(starting))
            if isinstance(error, FAILURES):
                raise explain(error, f"the group of {self._name}") from error
            raise

    async def _give_up(self, starting: asyncio.Future[None]) -> None:
        """Half started, Faust could not be stopped: a thread of its reader would stay. And it starts only once."""
        await asyncio.gather(starting, return_exceptions=True)
        await self._app.stop()
        let_go(self._app)
        self._app = self._new_app()

    def _waits(self, error: DagbokError, delay_s: float) -> None:
        logger.warning("lane.waits", lane=self._name, error=error.message, advice=error.advice, again_s=delay_s)

    def _new_app(self) -> faust.App:
        prefix = self._settings.prefix
        app = new_app(
            self._settings, lane_group(prefix, self._lane), session_s=self._session_s, scratch=self._scratch
        )
        topic = app.topic(
            lane_topic(prefix, self._lane), value_type=bytes, value_serializer="raw", key_serializer="raw",
            allow_empty=True,
        )  # fmt: skip

        async def read(stream: StreamT[bytes]) -> None:
            assert isinstance(stream, Stream)
            async for event in stream.noack().events():
                await self._offer(event)

        app.agent(topic, name=self._name)(read)
        return app

    @property
    def _name(self) -> str:
        return ".".join(self._lane)

    async def _offer(self, event: EventT[bytes]) -> None:
        try:
            dispatch = await self._parcels.unpack(event.value)
            if (dispatch.kind, dispatch.pool) != self._lane:
                raise msgspec.ValidationError(f"a dispatch of {dispatch.kind} in {dispatch.pool}")
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, TypeError) as error:
            self.garbage += 1
            self._on_garbage(self._name, error)
            event.ack()
            return
        except Unavailable as error:
            logger.warning("lane.dispatch_unavailable", lane=self._name, error=str(error))
            event.ack()
            return
        if traceparent := (event.headers or {}).get(TRACEPARENT):
            dispatch = replace(dispatch, traceparent=traceparent.decode(errors="replace"))
        await self._intake.offer(dispatch, _acknowledging(event))


async def _surely(ending: Coroutine[object, object, None]) -> None:
    """To its end, however often the caller is cancelled meanwhile."""
    task = asyncio.ensure_future(ending)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            cancelled = True
    task.result()
    if cancelled:
        raise asyncio.CancelledError


def _acknowledging(event: EventT[bytes]) -> Callable[[], object]:
    return event.ack
