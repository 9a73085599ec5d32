"""The dispatcher of one partition: follows confirmed commits, keeps the lanes, and sends.

`confirmed` and `rebuild` only note; `send` puts on the queue what may go out now. It can lose everything it knows: the
state says which attempts are open and not claimed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from dagbok.agents.queue import AttemptKey, Lane, Queue, lane_of
from dagbok.agents.scheduler.decide.judges import key_of
from dagbok.agents.scheduler.dispatch.lane import SCHEDULE_TO_START_S, WINDOW, LaneState, Offer
from dagbok.agents.scheduler.dispatch.message import build_dispatch
from dagbok.agents.scheduler.dispatch.payloads import RecentPayloads
from dagbok.agents.scheduler.dispatch.problems import Problems
from dagbok.agents.scheduler.dispatch.tenants import StreamAttempt, TenantLimit, TenantPlaces
from dagbok.agents.scheduler.handle import Decided
from dagbok.events.envelope import CancelHint, Dispatch
from dagbok.events.errors import DagbokError
from dagbok.events.ids import run_stream
from dagbok.events.log.port import Log
from dagbok.events.run import events as e
from dagbok.events.run.values import AttemptKind
from dagbok.projections.partition import PartitionState
from dagbok.projections.task_graph.state import Attempt, ProblemRef, RunState, TaskNode

SETTLING = (
    e.AttemptReleased,
    e.AttemptClosed,
    e.AttemptLost,
    e.AttemptFailed,
    e.CandidateSubmitted,
    e.DecompositionProposed,
    e.DecompositionAccepted,
    e.DecompositionRefused,
    e.VerdictRecorded,
    e.TaskBlocked,
)
STOPPING = (e.AttemptClosed, e.AttemptLost, e.AttemptFailed)
ENDING = (e.RunSucceeded, e.RunFailed, e.RunCancelled)


class Dispatcher:
    """`now_s` is a monotonic clock. `window` and `schedule_to_start_s`: see `LaneState`. `tenant_limit`: by tenant, how
    many attempts may be sent or claimed at once in this partition; none: as many as the windows allow. `far`: see
    `Problems`; then `read` is to be called as long as `lacks`."""

    def __init__(
        self,
        queue: Queue,
        log: Log,
        now_s: Callable[[], float],
        *,
        window: int = WINDOW,
        schedule_to_start_s: float = SCHEDULE_TO_START_S,
        tenant_limit: TenantLimit | None = None,
        far: bool = False,
    ) -> None:
        self._queue, self._now_s = queue, now_s
        self._window, self._schedule_to_start_s = window, schedule_to_start_s
        self._payloads = RecentPayloads()
        self._problems = Problems(log, far=far)
        self._unread: dict[StreamAttempt, tuple[Offer, tuple[ProblemRef, ...]]] = {}
        self._tenants = TenantPlaces(tenant_limit)
        self._lanes: dict[Lane, LaneState] = {}
        self._open: dict[StreamAttempt, Lane] = {}
        self._sent: set[StreamAttempt] = set()
        self._parked: dict[str, list[Offer]] = {}
        self._claimed: dict[StreamAttempt, str] = {}

    def rebuild(self, state: PartitionState) -> None:
        """Forget everything; every claimed attempt counts as running, every open one as not sent, although another
        owner may have sent it: see `Dispatch.claim_first`."""
        self._lanes.clear()
        self._open.clear()
        self._sent.clear()
        self._parked.clear()
        self._claimed.clear()
        self._tenants.clear()
        self._problems.clear()
        self._unread.clear()
        for run in state.runs.values():
            for task in run.active:
                node = run.tasks[task]
                if node.attempt is not None:
                    self._take_over(run, node, node.attempt)
        self._sent.update(self._open)

    def confirmed(self, state: PartitionState, decided: Decided) -> None:
        """Note what a confirmed commit opens, settles and stops."""
        stream = decided.stream
        if stream is None:
            return
        run = state.runs[stream]
        for index, event in enumerate(decided.events):
            self._problems.add(decided.commit.offset, index, event)
            if isinstance(event, e.AttemptOpened):
                self._offer(run, event.task, event.epoch, event.kind, event.pool, event.priority)
            elif isinstance(event, SETTLING):
                self._settle((stream, event.task, event.epoch), event)
                if isinstance(event, e.CandidateSubmitted):
                    self._payloads.add(decided.commit.offset, index, event)
            elif isinstance(event, e.AttemptStarted):
                self._claim((stream, event.task, event.epoch), run.tenant, event.reply_to)
            elif isinstance(event, e.AttemptUnserved):
                self._unserved(run, event)
            elif isinstance(event, e.RunPaused):
                self._pause(run)
            elif isinstance(event, ENDING):
                self._parked.pop(stream, None)
            elif isinstance(event, e.RunResumed | e.RunReopened):
                self._resume(run)

    def send(self, state: PartitionState) -> None:
        """Put on the queue what the windows and the limits of the tenants allow."""
        now_s = self._now_s()
        for lane in tuple(self._lanes):
            self._send_lane(state, lane, now_s)
        while (woken := self._tenants.next_to_wake()) is not None:
            tenant, lane = woken
            if lane in self._lanes:
                self._lanes[lane].wake(tenant)
                self._send_lane(state, lane, now_s)

    @property
    def lacks(self) -> bool:
        """Attempts wait whose dispatches tell of something that has to be read first."""
        return bool(self._unread)

    async def read(self, partition: int) -> None:
        """Bring what is lacking, so that the next `send` can tell it. Raises `DagbokError` when it cannot be read."""
        wanted = dict(self._unread)
        await self._problems.read(partition, [ref for _, refs in wanted.values() for ref in refs])
        now_s = self._now_s()
        for key, (offer, _) in wanted.items():
            # Otherwise the state was folded anew meanwhile, and says itself what is open.
            if self._unread.pop(key, None) is not None and key in self._open:
                self._lane(self._open[key]).back(offer, now_s)

    def resend(self, lane: Lane, attempts: Sequence[AttemptKey]) -> None:
        """Whoever took these is gone: those that nobody has claimed are due now."""
        lane_state = self._lanes.get(lane)
        if lane_state is not None:
            now_s = self._now_s()
            for run, task, epoch in attempts:
                lane_state.lost((run_stream(run), task, epoch), now_s)

    def _send_lane(self, state: PartitionState, lane: Lane, now_s: float) -> None:
        lane_state = self._lanes[lane]
        batch: list[Dispatch] = []
        offer = None
        try:
            while len(self._unread) < self._window and (offer := lane_state.next(now_s)) is not None:
                dispatch = self._dispatch(state, offer)
                if dispatch is not None:
                    lane_state.sent(offer, now_s)
                    if offer.key in self._sent:
                        dispatch = msgspec.structs.replace(dispatch, claim_first=True)
                    self._sent.add(offer.key)
                    self._tenants.take(offer.key, offer.tenant)
                    batch.append(dispatch)
        except (DagbokError, OSError):
            # What it says could not be read. It waits on; whoever called decides whether that can heal.
            if offer is not None:
                lane_state.back(offer, now_s)
            raise
        finally:
            if batch:
                self._queue.put(lane, batch)
        if lane_state.is_idle:
            del self._lanes[lane]

    def next_due_s(self) -> float | None:
        """When `send` is to be called at the latest, on the monotonic clock."""
        if self._unread:
            return self._now_s()
        return min((due for lane in self._lanes.values() if (due := lane.next_due_s()) is not None), default=None)

    def _take_over(self, run: RunState, node: TaskNode, attempt: Attempt) -> None:
        if attempt.claim is None:
            self._offer(run, node.id, attempt.epoch, attempt.kind, node.spec.pool, node.spec.priority)
        else:
            self._claim((run.stream, node.id, attempt.epoch), run.tenant, attempt.reply_to)

    def _offer(self, run: RunState, task: str, epoch: int, kind: AttemptKind, pool: str, priority: int) -> None:
        offer = Offer(run.stream, task, epoch, run.tenant, priority)
        lane = self._open[offer.key] = lane_of(kind, pool)
        self._lane(lane).offer(offer)

    def _lane(self, lane: Lane) -> LaneState:
        lane_state = self._lanes.get(lane)
        if lane_state is None:
            lane_state = LaneState(lane, self._tenants, self._window, self._schedule_to_start_s)
            self._lanes[lane] = lane_state
        return lane_state

    def _resume(self, run: RunState) -> None:
        for offer in self._parked.pop(run.stream, ()):
            if offer.key in self._open:
                self._lane(self._open[offer.key]).offer(offer)

    def _pause(self, run: RunState) -> None:
        """What was sent and not claimed leaves the windows, which other runs need, and is sent anew on resume."""
        for task in run.active:
            node = run.tasks[task]
            offer = Offer(run.stream, task, node.epoch, run.tenant, node.spec.priority)
            lane = self._open.get(offer.key)
            if lane is not None and self._lane(lane).withdraw(offer.key):
                self._unread.pop(offer.key, None)
                self._tenants.give(offer.key)
                self._parked.setdefault(run.stream, []).append(offer)

    def _settle(self, key: StreamAttempt, event: e.Event) -> None:
        lane = self._leave(key)
        self._tenants.give(key)
        reply_to = self._claimed.pop(key, None)
        if not isinstance(event, STOPPING):
            return
        stream, task, epoch = key
        hint = CancelHint(run=stream.removeprefix("run:"), task=task, epoch=epoch)
        if reply_to is not None:
            self._queue.reply(reply_to, (hint,))
        elif lane is not None:
            # Nobody claimed it: whoever took it may have it waiting, or run it unclaimed.
            self._queue.hint(lane, (hint,))

    def _leave(self, key: StreamAttempt) -> Lane | None:
        self._sent.discard(key)
        self._unread.pop(key, None)
        lane = self._open.pop(key, None)
        if lane is not None and (lane_state := self._lanes.get(lane)) is not None:
            lane_state.settled(key)
        return lane

    def _claim(self, key: StreamAttempt, tenant: str, reply_to: str | None) -> None:
        self._leave(key)
        self._tenants.take(key, tenant)
        if reply_to is not None:
            self._claimed[key] = reply_to

    def _unserved(self, run: RunState, event: e.AttemptUnserved) -> None:
        key = run.stream, event.task, event.epoch
        lane = self._open.get(key)
        if lane is not None:
            self._unread.pop(key, None)
            self._tenants.give(key)
            priority = run.tasks[event.task].spec.priority
            self._lane(lane).unserved(Offer(run.stream, event.task, event.epoch, run.tenant, priority), self._now_s())

    def _dispatch(self, state: PartitionState, offer: Offer) -> Dispatch | None:
        run = state.runs.get(offer.stream)
        if run is None or offer.key not in self._open:
            return None
        if run.status == "paused":
            self._parked.setdefault(offer.stream, []).append(offer)
            return None
        node = run.tasks[offer.task]
        attempt = node.attempt
        if attempt is None or attempt.epoch != offer.epoch or attempt.claim is not None:
            return None
        if refs := self._problems.lacking(node):
            self._unread[offer.key] = offer, refs
            return None
        key = key_of(run, node, attempt.kind)
        return build_dispatch(run, node, attempt, key, state.partition, self._payloads, self._problems)
