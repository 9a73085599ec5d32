"""A lane that this process serves: a member of the lane's group, hosted by Faust, which reads the lane's topic."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path

import msgspec
from faust.streams import Stream
from faust.types import EventT, StreamT

from dagbok.agents.kafka.faust_app import new_app
from dagbok.agents.kafka.lane import LaneIntake
from dagbok.agents.kafka.names import lane_group, lane_topic
from dagbok.agents.queue.port import Lane
from dagbok.events.envelope import Dispatch
from dagbok.events.errors import LogError
from dagbok.events.log.kafka_settings import KafkaSettings

_decode = msgspec.json.Decoder(Dispatch).decode


class LaneReader:
    """`intake`: takes what comes; `on_garbage`: told of records that are no dispatches of the lane; `scratch`: a folder
    that Faust may use."""

    def __init__(
        self,
        settings: KafkaSettings,
        lane: Lane,
        intake: LaneIntake,
        on_garbage: Callable[[str, Exception], None],
        *,
        session_s: float,
        scratch: Path,
    ) -> None:
        self._lane, self._intake, self._on_garbage = lane, intake, on_garbage
        self._app = new_app(settings, lane_group(settings.prefix, lane), session_s=session_s, scratch=scratch)
        self._read(lane_topic(settings.prefix, lane))
        self.joined = False
        """Whether it takes part."""
        self.garbage = 0
        """Records that were no dispatches of the lane."""

    @property
    def partitions(self) -> frozenset[int]:
        """What the group has given to this process."""
        return frozenset(place.partition for place in self._app.consumer.assignment()) if self.joined else frozenset()

    async def run(self) -> None:
        """Serve until cancelled, then leave the group. Raises what makes Faust give up: a process that is up and reads
        nothing would be of no use to anybody."""
        starting = asyncio.ensure_future(self._app.start())
        try:
            await asyncio.shield(starting)
            self.joined = True
            await self._app.wait_until_stopped()
        finally:
            await _surely(self._leave(starting))
        raise LogError(f"the reader of {self._name} ended: {self._app.crash_reason!r}")

    async def _leave(self, starting: asyncio.Future[None]) -> None:
        """Half started, Faust could not be stopped: a thread of its reader would stay."""
        await asyncio.gather(starting, return_exceptions=True)
        await self._app.stop()

    def _read(self, topic_name: str) -> None:
        topic = self._app.topic(
            topic_name, value_type=bytes, value_serializer="raw", key_serializer="raw", allow_empty=True
        )

        async def read(stream: StreamT[bytes]) -> None:
            assert isinstance(stream, Stream)
            async for event in stream.noack().events():
                await self._offer(event)

        self._app.agent(topic, name=self._name)(read)

    @property
    def _name(self) -> str:
        return ".".join(self._lane)

    async def _offer(self, event: EventT[bytes]) -> None:
        try:
            dispatch = _decode(event.value)
            if (dispatch.kind, dispatch.pool) != self._lane:
                raise msgspec.ValidationError(f"a dispatch of {dispatch.kind} in {dispatch.pool}")
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, TypeError) as error:
            self.garbage += 1
            self._on_garbage(self._name, error)
            event.ack()
            return
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
