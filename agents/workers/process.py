"""A worker process: takes what its pools offer, runs it, answers. Any number of them may run; the log decides who
counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import structlog

from dagbok.agents.queue import KINDS, AttemptKey, Queue, SharedQueue, attempt_of, lane_address, lane_of
from dagbok.agents.tracing.switch import attempt_contexts
from dagbok.agents.workers.attempts import Attempts
from dagbok.agents.workers.calls import Calls
from dagbok.agents.workers.definitions import Registry
from dagbok.agents.workers.holdings import Holdings
from dagbok.agents.workers.lanes import KeyLane, PoolTaker
from dagbok.agents.workers.leases import LeaseKeeper
from dagbok.agents.workers.outbox import Outbox
from dagbok.agents.workers.reader import ArtifactReader
from dagbok.events.envelope import Answer, Dispatch, Reply
from dagbok.events.log.clock import Clock
from dagbok.events.log.port import Log
from dagbok.events.run.values import AttemptKind

logger = structlog.get_logger(__name__)

MOST_NAMED = 20
"""How many of the keys that it serves a process names when it turns an attempt down."""


class WorkerProcess:
    """Serves the keys of `registry` in some pools. `process`: its id; `clock`, `now_s`, `nonce` as in `Holdings`."""

    def __init__(
        self,
        registry: Registry,
        queue: Queue,
        log: Log,
        reader: ArtifactReader,
        *,
        process: str,
        clock: Clock,
        now_s: Callable[[], float],
        nonce: str | None = None,
    ) -> None:
        self._registry, self._queue = registry, queue
        self._shared = queue if isinstance(queue, SharedQueue) else None
        self._process, self._address = process, f"process/{process}"
        self._outbox = Outbox(log, self._address, now_s)
        self._holdings = Holdings(
            process,
            self._address,
            self._outbox,
            clock,
            now_s,
            nonce,
            on_settled=self._settled,
            context=attempt_contexts(),
        )
        self._leases = LeaseKeeper(self._holdings, now_s)
        self._calls = Calls()
        self._attempts = Attempts(self._holdings, self._calls, reader)
        self._lanes: dict[tuple[AttemptKind, str], KeyLane] = {}
        self._pools: dict[str, dict[AttemptKind, asyncio.Task[None]]] = {}
        self._services: list[asyncio.Task[None]] = []

    def start(self, pools: Iterable[str], kinds: Sequence[AttemptKind] = KINDS) -> None:
        """Begin to serve attempts of these kinds; pools may be added later."""
        if not self._services:
            self._queue.listen(self._address, self._replied)
            self._services = [asyncio.create_task(self._outbox.run()), asyncio.create_task(self._leases.run())]
        for pool in pools:
            if pool not in self._pools:
                for kind in kinds:
                    self._queue.listen(lane_address(lane_of(kind, pool)), self._replied)
                    if self._shared is not None:
                        self._shared.serve(lane_of(kind, pool), PoolTaker(kind, pool, self._registry, self._lanes))
                self._pools[pool] = {kind: asyncio.create_task(self._pull(kind, pool)) for kind in kinds}

    @property
    def services(self) -> Sequence[asyncio.Task[None]]:
        """What has to run as long as this process serves: when one of them fails, the process is of no use any
        more."""
        return [*self._services, *self._pulling()]

    async def stop(self, grace_s: float) -> None:
        """Take nothing more, stop what runs, hand back what was claimed, and see it acknowledged within `grace_s`."""
        self._holdings.closing = True
        await _cancelled(self._pulling())
        for pool, pulling in self._pools.items():
            for kind in pulling:
                self._queue.forget(lane_address(lane_of(kind, pool)), self._replied)
                if self._shared is not None:
                    self._shared.leave(lane_of(kind, pool))
        self._pools.clear()
        closing = [asyncio.create_task(lane.close()) for lane in self._lanes.values()]
        if closing and (await asyncio.wait(closing, timeout=grace_s))[1]:
            # A function that ignores its cancellation is left behind; what it returns is refused.
            logger.warning("worker.functions_ignore_cancel", process=self._process, grace_s=grace_s)
        self._holdings.release_all()
        try:
            async with asyncio.timeout(grace_s):
                await self._outbox.settled()
        except TimeoutError:
            logger.warning("worker.stopped_unsettled", process=self._process, grace_s=grace_s)
        await _cancelled(self._services)
        self._services = []
        self._queue.forget(self._address, self._replied)
        self._calls.close()

    def _pulling(self) -> Sequence[asyncio.Task[None]]:
        return [task for pulling in self._pools.values() for task in pulling.values()]

    async def _pull(self, kind: AttemptKind, pool: str) -> None:
        while True:
            for dispatch in await self._queue.take(lane_of(kind, pool)):
                self._deliver(dispatch)

    def _deliver(self, dispatch: Dispatch) -> None:
        """From here on this process knows the attempt: it waits in its lane, and then it is held. Until it is over,
        nothing that comes of it again is run; and what comes again of one that is claimed, which may run for hours, the
        queue need not keep."""
        if (key := attempt_of(dispatch)) in self._holdings:
            if self._holdings.is_claimed(key):
                self._settled(dispatch)
            return
        lane = self._lanes.get((dispatch.kind, dispatch.key)) or self._open_lane(dispatch.kind, dispatch.key)
        if lane is None or not self._is_bound_to(dispatch):
            self._holdings.reject(dispatch, self._served(dispatch.kind))
        else:
            lane.put(dispatch)

    def _is_bound_to(self, dispatch: Dispatch) -> bool:
        """A review is for the verifier that the run is bound to: another version of it would judge for nothing."""
        return dispatch.pin is None or self._registry.verifiers[dispatch.key].pin == dispatch.pin

    def _served(self, kind: AttemptKind) -> tuple[str, ...]:
        if kind == "work":
            return tuple(sorted(self._registry.workers)[:MOST_NAMED])
        verifiers = self._registry.verifiers.values()
        return tuple(sorted([f"{verifier.key} (version {verifier.version})" for verifier in verifiers])[:MOST_NAMED])

    def _open_lane(self, kind: AttemptKind, key: str) -> KeyLane | None:
        lane: KeyLane | None = None
        freed = None if self._shared is None else partial(_freed, self._shared)
        if kind == "work":
            worker = self._registry.workers.get(key)
            if worker is not None:
                lane = KeyLane(worker.concurrency, partial(self._attempts.work, worker), freed)
        else:
            verifier = self._registry.verifiers.get(key)
            if verifier is not None:
                lane = KeyLane(verifier.concurrency, partial(self._attempts.review, verifier), freed)
        if lane is not None:
            self._lanes[kind, key] = lane
        return lane

    def _replied(self, replies: Sequence[Reply]) -> None:
        for reply in replies:
            if isinstance(reply, Answer):
                self._outbox.answered(reply)
            else:
                self._stop(attempt_of(reply))

    def _settled(self, dispatch: Dispatch) -> None:
        if self._shared is not None:
            self._shared.settled(lane_of(dispatch.kind, dispatch.pool), attempt_of(dispatch))

    def _stop(self, key: AttemptKey) -> None:
        for lane in self._lanes.values():
            if (dispatch := lane.drop(key)) is not None:
                self._settled(dispatch)
        self._holdings.stop(key, "cancelled by the scheduler")


def _freed(queue: SharedQueue, dispatch: Dispatch) -> None:
    queue.freed(lane_of(dispatch.kind, dispatch.pool))


async def _cancelled(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
