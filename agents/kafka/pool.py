"""A pool that this process serves: a member of the pool's group, hosted by Faust, which reads the pool's two topics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path

import msgspec
from faust.streams import Stream
from faust.types import EventT, StreamT

from dagbok.agents.kafka.faust_app import new_app
from dagbok.agents.kafka.lane import LaneIntake
from dagbok.agents.kafka.names import lane_topic, pool_group
from dagbok.agents.queue.port import Lane
from dagbok.events.envelope import Dispatch
from dagbok.events.errors import LogError
from dagbok.events.log.kafka_settings import KafkaSettings

_decode = msgspec.json.Decoder(Dispatch).decode


class PoolIntake:
    """`lanes`: of this pool; `on_garbage`: told of records that are no dispatches of it; `scratch`: a folder that Faust
    may use."""

    def __init__(
        self,
        settings: KafkaSettings,
        pool: str,
        lanes: Mapping[Lane, LaneIntake],
        on_garbage: Callable[[str, Exception], None],
        *,
        session_s: float,
        scratch: Path,
    ) -> None:
        self._pool, self._on_garbage = pool, on_garbage
        self._app = new_app(settings, pool_group(settings.prefix, pool), session_s=session_s, scratch=scratch)
        for lane, intake in lanes.items():
            self._read(lane_topic(settings.prefix, lane), lane, intake)

    async def run(self) -> None:
        """Serve until cancelled, then leave the group. Raises what makes Faust give up: a process that is up and reads
        nothing would be of no use to anybody."""
        starting = asyncio.ensure_future(self._app.start())
        try:
            await asyncio.shield(starting)
            await self._app.wait_until_stopped()
        finally:
            await _surely(self._leave(starting))
        raise LogError(f"the reader of pool {self._pool} ended: {self._app.crash_reason!r}")

    async def _leave(self, starting: asyncio.Future[None]) -> None:
        """Half started, Faust could not be stopped: a thread of its reader would stay."""
        await asyncio.gather(starting, return_exceptions=True)
        await self._app.stop()

    def _read(self, name: str, lane: Lane, intake: LaneIntake) -> None:
        topic = self._app.topic(name, value_type=bytes, value_serializer="raw", key_serializer="raw", allow_empty=True)

        async def read(stream: StreamT[bytes]) -> None:
            assert isinstance(stream, Stream)
            async for event in stream.noack().events():
                await self._offer(event, lane, intake)

        self._app.agent(topic, name=f"{'.'.join(lane)}")(read)

    async def _offer(self, event: EventT[bytes], lane: Lane, intake: LaneIntake) -> None:
        try:
            dispatch = _decode(event.value)
            if (dispatch.kind, dispatch.pool) != lane:
                raise msgspec.ValidationError(f"a dispatch of {dispatch.kind} in {dispatch.pool}")
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, TypeError) as error:
            self._on_garbage(self._pool, error)
            event.ack()
            return
        await intake.offer(dispatch, _acknowledging(event))


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
