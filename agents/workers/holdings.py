"""The attempts that one worker process holds, with their claims and leases."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator

import structlog

from dagbok.agents.queue.port import AttemptKey, attempt_of
from dagbok.agents.tracing.switch import AttemptContext, no_attempt_context
from dagbok.agents.workers.context import TaskContext
from dagbok.agents.workers.held import Held
from dagbok.agents.workers.outbox import OnAnswer, Outbox
from dagbok.events.envelope import Answer, Command, Dispatch, Sender, run_command
from dagbok.events.errors import StorageFailed
from dagbok.events.ids import run_stream
from dagbok.events.log.clock import Clock
from dagbok.events.run.commands import RejectAttempt, ReleaseAttempt, Renewal, RenewLeases, RunCommand, StartAttempt
from dagbok.events.run.values import Claim

logger = structlog.get_logger(__name__)


def _nobody_asks(dispatch: Dispatch) -> None:
    """Settled attempts interest nobody."""


class Holdings:
    """`process` is this process's id; `address` where answers to its claims and hints go. `clock` is in milliseconds
    since 1970, `now_s` monotonic seconds; `nonce` tells its claims and commands from those of others (random unless
    given). `shorter` is set when the shortest lease becomes shorter; `closing` when the process stops all it holds.
    `context`: the span of an attempt, which every command about it carries; a renewal of several carries none."""

    def __init__(
        self,
        process: str,
        address: str,
        outbox: Outbox,
        clock: Clock,
        now_s: Callable[[], float],
        nonce: str | None = None,
        *,
        on_settled: Callable[[Dispatch], None] = _nobody_asks,
        context: AttemptContext = no_attempt_context,
    ) -> None:
        """`on_settled` hears when the log has the first word of an attempt, and when this process is done with it."""
        self._process, self._address, self._outbox = process, address, outbox
        self._on_settled, self._context = on_settled, context
        self._clock, self._now_s = clock, now_s
        self._held: dict[AttemptKey, Held] = {}
        self._starts = 0
        self._ids = 0
        self._nonce = nonce or secrets.token_hex(8)
        self.shortest_lease_s = float("inf")
        self.shorter = asyncio.Event()
        self.closing = False

    def __iter__(self) -> Iterator[Held]:
        return iter(tuple(self._held.values()))

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, key: AttemptKey) -> bool:
        return key in self._held

    def is_claimed(self, key: AttemptKey) -> bool:
        """Whether this process holds the attempt, and the log says so."""
        held = self._held.get(key)
        return held is not None and held.claimed

    def next_id(self) -> str:
        """A fresh command id: 64 random bits of the process and a number."""
        self._ids += 1
        return f"{self._nonce}{self._ids:016x}"

    def take(self, dispatch: Dispatch, context: TaskContext) -> Held | None:
        """Hold an attempt under a fresh claim; none when this process holds it already (it was dispatched twice)."""
        key = attempt_of(dispatch)
        if key in self._held:
            return None
        self._starts += 1
        claim = Claim(self._process, self._starts, self._nonce)
        held = self._held[key] = Held(dispatch, claim, context, self._now_s())
        if held.lease_s < self.shortest_lease_s:
            self.shortest_lease_s = held.lease_s
            self.shorter.set()
        return held

    def drop(self, held: Held) -> None:
        """The attempt is over for this process."""
        self._held.pop(held.key, None)
        self._on_settled(held.dispatch)
        if not self._held:
            self.shortest_lease_s = float("inf")

    async def claim(self, held: Held) -> bool:
        """Append the claim and wait until it is decided: true when this process may run the attempt."""
        held.claiming = True
        sent_s = self._now_s()
        command = self._command(held.dispatch, self._start(held), self.next_id())
        answer = await self._outbox.ask(command, traceparent=self._context(held.dispatch))
        if answer.accepted:
            held.lease_begins(sent_s)
            self._on_settled(held.dispatch)
        return answer.accepted and held.stopped is None

    async def tell(self, dispatch: Dispatch, command: RunCommand) -> Answer:
        """Send something of a running attempt; the answer, which does not say *retry*."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._send(dispatch, command, lambda found: None if answer.done() else answer.set_result(found), insist=True)
        return await answer

    def claim_beside(self, held: Held) -> None:
        """Append the claim of an attempt that runs already; a refusal stops it."""
        held.claiming = True
        sent_s = self._now_s()
        self._send(held.dispatch, self._start(held), lambda answer: self._claimed_beside(held, sent_s, answer))

    def submit(self, held: Held, command: RunCommand, command_id: str, on_answer: OnAnswer) -> None:
        """Send what ends the attempt. Its lease is renewed until there is an answer."""
        held.submitted = True
        self._send(held.dispatch, command, on_answer, id=command_id, insist=True)

    def renew(self, run: str, helds: list[Held]) -> None:
        """Renew the leases of one run with one command."""
        sent_s = self._now_s()
        renewals = tuple([Renewal(held.dispatch.task, held.dispatch.epoch, held.claim) for held in helds])
        for held in helds:
            held.renewed_s = sent_s
        command = self._command(helds[0].dispatch, RenewLeases(renewals), self.next_id())
        self._outbox.send(command, lambda answer: self._renewed(helds, sent_s, answer), insist=False)

    def reject(self, dispatch: Dispatch, serves: tuple[str, ...]) -> None:
        """No function of this process has the key."""
        logger.warning(
            "attempt.unserved",
            run=dispatch.run,
            task=dispatch.task,
            epoch=dispatch.epoch,
            key=dispatch.key,
            serves=serves,
        )
        command = RejectAttempt(dispatch.task, dispatch.epoch, self._process, serves)
        self._send(dispatch, command, lambda answer: self._on_settled(dispatch))

    def release_all(self) -> None:
        """Hand back what is claimed and not finished; what is not claimed is open still."""
        for held in self:
            if held.submitted:
                continue
            held.context.cancelled = True
            if held.claiming or held.claimed:
                release = ReleaseAttempt(held.dispatch.task, held.dispatch.epoch, held.claim, held.context.used)
                self._send(held.dispatch, release)
                self.drop(held)
            else:
                del self._held[held.key]

    def stop(self, key: AttemptKey, reason: str) -> None:
        """Stop the attempt, if this process holds it."""
        held = self._held.get(key)
        if held is not None:
            held.stop(reason)

    def give_up(self, key: AttemptKey, failure: StorageFailed) -> None:
        """What came of the attempt cannot be stored, which is not its fault: it runs again elsewhere or later. This
        process ends."""
        held = self._held.get(key)
        if held is not None:
            held.stopped = failure.message
        self._outbox.fail(failure)

    def _start(self, held: Held) -> StartAttempt:
        return StartAttempt(held.dispatch.task, held.dispatch.epoch, held.claim, self._address)

    def _claimed_beside(self, held: Held, sent_s: float, answer: Answer) -> None:
        if answer.accepted:
            held.lease_begins(sent_s)
            self._on_settled(held.dispatch)
        elif answer.retry:
            # The run is paused, say: what runs may finish, and the claim is tried again.
            held.claim_put_off(self._now_s())
        else:
            held.stop(f"claim refused: {answer.code}")

    def _renewed(self, helds: list[Held], sent_s: float, answer: Answer) -> None:
        stopped = set(answer.stopped)
        for held in helds:
            refused = (held.dispatch.task, held.dispatch.epoch) in stopped or not (answer.accepted or answer.retry)
            if refused:
                held.stop("renewal refused")
            elif answer.accepted and answer.events:
                # A repeated answer says nothing of the single leases; the next renewal will.
                held.lease_begins(sent_s)

    def _send(
        self,
        dispatch: Dispatch,
        command: RunCommand,
        on_answer: OnAnswer | None = None,
        *,
        id: str | None = None,
        insist: bool = False,
    ) -> None:
        envelope = self._command(dispatch, command, id or self.next_id())
        self._outbox.send(envelope, on_answer, insist=insist, traceparent=self._context(dispatch))

    def _command(self, dispatch: Dispatch, command: RunCommand, id: str) -> Command:
        sender = Sender(dispatch.tenant, dispatch.project, f"process:{self._process}")
        return run_command(sender, run_stream(dispatch.run), command, id=id, now_ms=self._clock())
