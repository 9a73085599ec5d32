"""How a worker process holds attempts: claims them, runs one function in each, and sends what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import structlog

from dagbok.agents.faultpoints import DISPATCH_TAKEN, FUNCTION_BEGINS, FUNCTION_DONE, RESULT_ENCODED, reach
from dagbok.agents.tracing.switch import Around, around_attempts
from dagbok.agents.workers.calls import Calls
from dagbok.agents.workers.context import Candidate, TaskContext
from dagbok.agents.workers.definitions import PURE_GRACE_S, Verifier, Worker
from dagbok.agents.workers.edges import warn_of_idle_conditions
from dagbok.agents.workers.encode import encode_failure, encode_outcome, encode_report, encode_usage
from dagbok.agents.workers.held import Held
from dagbok.agents.workers.holdings import Holdings
from dagbok.agents.workers.outbox import OnAnswer
from dagbok.agents.workers.reader import ArtifactReader, scope_of
from dagbok.agents.workers.retry import retry_after_ms
from dagbok.agents.workers.storing import stored
from dagbok.agents.workers.suspending import session_of
from dagbok.events.codes import Code
from dagbok.events.envelope import Answer, Dispatch
from dagbok.events.run.amounts import plus
from dagbok.events.run.commands import FailAttempt, RunCommand, SubmitOutcome, SubmitVerdict
from dagbok.events.run.values import Decompose, Failure
from dagbok.events.specs import Outcome

logger = structlog.get_logger(__name__)

Body = Callable[[Held, str], Awaitable[RunCommand]]
"""Does the attempt and gives the command that ends it; the text is the id that the command will have."""

DETERMINISTIC = frozenset(
    (
        Code.INVALID_OUTCOME,
        Code.ARTIFACT_INTEGRITY,
        Code.TOO_LARGE,
        Code.UNDECODABLE,
        Code.VERDICT_MISMATCH,
        Code.INTERNAL_ERROR,
    )
)
"""A result refused with one of these is refused every time (`internal_error`: has been, see `Outbox`): the attempt ends
as a terminal failure. `verdict_mismatch` says that this process has another verifier than the run is bound to."""


class Attempts:
    """Runs attempts of both kinds."""

    def __init__(self, holdings: Holdings, calls: Calls, reader: ArtifactReader, around: Around | None = None) -> None:
        """`around`: what surrounds each function; what the environment says unless given."""
        self._holdings, self._calls, self._reader = holdings, calls, reader
        self._around = around or around_attempts()

    async def work(self, definition: Worker, dispatch: Dispatch) -> None:
        """One work attempt: from the dispatch to the outcome, or the failure, in the log's hands."""
        timeout_ms = dispatch.spec.timeout_ms
        may_wait = definition.pure and (timeout_ms is None or timeout_ms > PURE_GRACE_S * 1000)
        claim_first = dispatch.claim_first or not may_wait
        await self._run(dispatch, claim_first=claim_first, body=partial(self._outcome, definition))

    async def review(self, definition: Verifier, dispatch: Dispatch) -> None:
        """One review: a verifier changes nothing, so it need not claim before its grace is over."""
        await self._run(dispatch, claim_first=dispatch.claim_first, body=partial(self._verdict, definition))

    async def _run(self, dispatch: Dispatch, *, claim_first: bool, body: Body) -> None:
        context = TaskContext(dispatch, partial(self._reader.read, scope_of(dispatch)))
        held = self._holdings.take(dispatch, context)
        if held is None:
            return
        held.task = asyncio.current_task()
        context.open_session = partial(
            session_of, dispatch, held.claim, self._holdings, self._reader, asyncio.get_running_loop()
        )
        reach(DISPATCH_TAKEN)
        try:
            if claim_first and not await self._holdings.claim(held):
                self._holdings.drop(held)
                return
            reach(FUNCTION_BEGINS)
            command_id = self._holdings.next_id()
            with self._around(dispatch):
                command = await body(held, command_id)
            reach(RESULT_ENCODED)
            if held.stopped is None:
                self._holdings.submit(held, command, command_id, partial(self._answered, held))
        except asyncio.CancelledError as error:
            if held.stopped is None:
                if self._holdings.closing:
                    raise
                # Nobody cancelled the attempt: the function cancelled itself, or did not catch what it cancelled.
                _uncancel(held)
                self._fail(
                    held, RuntimeError("the function was cancelled from within").with_traceback(error.__traceback__)
                )
        except BaseException as error:
            # Whatever a function raises ends its attempt and nothing else.
            if held.stopped is None:
                self._fail(held, error)
        finally:
            self._let_go(held)

    def _let_go(self, held: Held) -> None:
        if held.stopped is not None:
            self._holdings.drop(held)
            # Only the attempt was cancelled; the runner goes on with the next one.
            _uncancel(held)
        held.task = None

    async def _outcome(self, definition: Worker, held: Held, command_id: str) -> RunCommand:
        dispatch = held.dispatch
        outcome = await self._calls.call(definition, held.context)
        reach(FUNCTION_DONE)
        encode = partial(encode_outcome, outcome, command_id, dispatch, partial(self._reader.put, scope_of(dispatch)))
        encoded = await stored(self._holdings, held.key, encode, is_large=_is_large(outcome))
        if isinstance(encoded, Decompose):
            warn_of_idle_conditions(encoded.tasks, run=dispatch.run, task=dispatch.task)
        usage = plus(encode_usage(outcome), held.context.used)
        return SubmitOutcome(dispatch.task, dispatch.epoch, held.claim, dispatch.input_hash, encoded, usage)

    async def _verdict(self, definition: Verifier, held: Held, command_id: str) -> RunCommand:
        dispatch = held.dispatch
        candidate = Candidate(dispatch, partial(self._reader.read, scope_of(dispatch)))
        if definition.timeout_s is None:
            verdict = await self._calls.call(definition, candidate, held.context)
        else:
            verdict = await self._verdict_in_time(definition, held, candidate, definition.timeout_s)
        report = encode_report(verdict, dispatch, definition.pin)
        return SubmitVerdict(dispatch.task, dispatch.epoch, held.claim, report, held.context.used)

    async def _verdict_in_time(
        self, definition: Verifier, held: Held, candidate: Candidate, timeout_s: float
    ) -> object:
        try:
            async with asyncio.timeout(timeout_s) as limit:
                return await self._calls.call(definition, candidate, held.context)
        except TimeoutError as error:
            if not limit.expired():
                raise
            # A thread cannot be stopped, but it can look.
            held.context.cancelled = True
            raise TimeoutError(f"the verifier took longer than {timeout_s} s") from error

    def _fail(self, held: Held, error: BaseException) -> None:
        failure = encode_failure(error)
        # The event keeps the traceback; a log line of every failure would drown the others.
        said = f"{failure.type}: {failure.message[:200]}"
        logger.info("attempt.failed", **held.ids, key=held.dispatch.key, error=said)
        self._send_failure(held, failure, partial(self._answered, held), retry_after_ms(error))

    def _send_failure(self, held: Held, failure: Failure, on_answer: OnAnswer, after_ms: int = 0) -> None:
        command = FailAttempt(held.dispatch.task, held.dispatch.epoch, held.claim, failure, held.context.used, after_ms)
        self._holdings.submit(held, command, self._holdings.next_id(), on_answer)

    def _answered(self, held: Held, answer: Answer) -> None:
        if answer.accepted:
            self._holdings.drop(held)
            return
        logger.warning("result.refused", **held.ids, code=answer.code, why=answer.reason)
        if answer.code in DETERMINISTIC:
            failure = Failure("terminal", str(answer.code), "", answer.reason)
            self._send_failure(held, failure, partial(self._given_up, held))
        else:
            self._holdings.drop(held)

    def _given_up(self, held: Held, answer: Answer) -> None:
        """Whether or not the log takes even this, there is nothing more that this process could do."""
        self._holdings.drop(held)
        if not answer.accepted:
            logger.error("attempt.given_up", **held.ids, code=answer.code, why=answer.reason)


def _uncancel(held: Held) -> None:
    while held.task is not None and held.task.cancelling():
        held.task.uncancel()


def _is_large(outcome: object) -> bool:
    if not isinstance(outcome, Outcome):
        return False
    for item in outcome.artifacts.values():
        if _may_be_large(item.content):
            return True
    return len(outcome.tasks) > 100


def _may_be_large(content: object) -> bool:
    if isinstance(content, bytes | bytearray | str):
        return len(content) > 8_000
    return isinstance(content, list | tuple | dict) and len(content) > 100
