"""Dispatches as they travel on topics (`docs/design/messages.md`, section 7). What does not fit into a record lies in
the artifact store, which is reached in threads: whoever sends or reads something small does not wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import msgspec
import structlog

from dagbok.agents.queue.port import AttemptKey, attempt_of
from dagbok.agents.queue.transport import decode_parcel, encode_dispatch, encode_small, fetch_dispatch
from dagbok.events.envelope import Dispatch
from dagbok.events.errors import DagbokError
from dagbok.projections.artifacts.port import ArtifactStore

logger = structlog.get_logger(__name__)

THREADS: Final = 4


class Unavailable(Exception):
    """What a parcel names cannot be had: its attempt is dispatched again, and written anew."""


class Parcels:
    """Of one process; it belongs to one event loop."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="dagbok-parcels")
        self._storing: dict[AttemptKey, asyncio.Task[None]] = {}
        self.lost = 0
        """How many could not be stored."""

    def pack(self, dispatch: Dispatch, send: Callable[[bytes], None]) -> None:
        """Call `send` with the parcel: at once, or when it is stored. One that is being stored already is not stored
        again."""
        parcel = encode_small(dispatch)
        if parcel is not None:
            send(parcel)
        elif (key := attempt_of(dispatch)) not in self._storing:
            task = self._storing[key] = asyncio.create_task(self._store_and(dispatch, send))
            task.add_done_callback(lambda _: self._storing.pop(key, None))

    async def unpack(self, data: bytes) -> Dispatch:
        """Raises `msgspec.MsgspecError` for what is no parcel of this version, and `Unavailable`."""
        found = decode_parcel(data)
        if isinstance(found, Dispatch):
            return found
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, fetch_dispatch, found, self._store)
        except (DagbokError, OSError) as error:
            raise Unavailable(str(error)) from error

    async def close(self) -> None:
        """Give up what is not stored yet."""
        tasks = list(self._storing.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _store_and(self, dispatch: Dispatch, send: Callable[[bytes], None]) -> None:
        try:
            loop = asyncio.get_running_loop()
            send(await loop.run_in_executor(self._threads, encode_dispatch, dispatch, self._store))
        except (DagbokError, OSError, msgspec.MsgspecError) as error:
            self.lost += 1
            about = {"run": dispatch.run, "task": dispatch.task, "epoch": dispatch.epoch}
            logger.warning("queue.dispatch_lost", **about, error=str(error))
