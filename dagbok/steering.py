"""What can be told to a run that exists. Each method is one command: whichever process owns its run decides it, and
its answer says which events came of it and where they stand in the log."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Unpack

import msgspec

from dagbok.agents.hosting.port import Host
from dagbok.agents.workers.definitions import Registry
from dagbok.agents.workers.encode import encode_spec
from dagbok.events.arguments import text, typed, whole
from dagbok.events.budgets import LimitChanges, Limits
from dagbok.events.codes import Code
from dagbok.events.envelope import Answer
from dagbok.events.errors import Refused
from dagbok.events.ids import check_id
from dagbok.events.near import did_you_mean
from dagbok.events.numbers import MAX_COUNT
from dagbok.events.run.commands import (
    AmendRun,
    CancelRun,
    CancelTask,
    PauseRun,
    ResolveBlock,
    ResumeRun,
    RetryTask,
    RunCommand,
    SupersedeTask,
)
from dagbok.events.run.values import FailurePolicy, VerifierPin
from dagbok.events.specs import TaskSpec
from dagbok.limiting import limits_command
from dagbok.sending import client_command
from dagbok.starting import check_pinned

DEFAULT_TENANT = "local"
DEFAULT_PROJECT = "default"


class Superseded(Answer, frozen=True, kw_only=True):
    """The answer to `supersede`. `replacement`: the id of the task that stands in the place of the old one."""

    replacement: str


class Steering:
    """Each method sends one command and returns when it is decided and surely in the log, with an `Answer`: `at`, the
    place of the decision in the log (partition, offset), and `events`, the types of the events that came of it. The
    command is sent until it is answered, and decided once.

    `reason` and `note` are kept in the log. Every method raises `Refused` when the command is refused, and then nothing
    has changed: `not_found` for a run or task that is not there or is foreign, `run_closed` for a run that has ended,
    `version_conflict` when the run or the task does not stand so that this could be done. It raises `InvalidInput` for
    a tenant or project that is no id (`invalid_spec`) and for an argument of another type (`usage`), and as
    `Dagbok.wait` does when this process cannot go on.
    """

    def __init__(self, host: Host, registry: Registry, *, pool: str, user: str) -> None:
        """`registry`: whose verifiers runs are bound to; `pool`: where tasks go that name none; `user`: in whose name
        commands are sent."""
        self._host, self._registry, self._pool, self._user = host, registry, pool, user

    async def pause(
        self, run: str, *, tenant: str = DEFAULT_TENANT, project: str = DEFAULT_PROJECT, reason: str = ""
    ) -> Answer:
        """No attempt starts until `resume`; what runs may finish, and its results count. Refused (`version_conflict`)
        when it is paused."""
        return await self._send(run, PauseRun(text("reason", reason)), tenant, project)

    async def resume(
        self, run: str, *, tenant: str = DEFAULT_TENANT, project: str = DEFAULT_PROJECT, reason: str = ""
    ) -> Answer:
        """Go on after `pause`. Refused (`version_conflict`) when it is not paused: of a blocked run, `resolve` the
        tasks."""
        return await self._send(run, ResumeRun(text("reason", reason)), tenant, project)

    async def cancel(
        self, run: str, *, tenant: str = DEFAULT_TENANT, project: str = DEFAULT_PROJECT, reason: str = ""
    ) -> Answer:
        """End the run for good: its attempts are closed, its open tasks cancelled; what is verified stays published.
        `wait` returns a result that says so, and what workers return later is dropped."""
        return await self._send(run, CancelRun(text("reason", reason)), tenant, project)

    async def cancel_task(
        self, run: str, task: str, *, tenant: str = DEFAULT_TENANT, project: str = DEFAULT_PROJECT, reason: str = ""
    ) -> Answer:
        """End one branch: the task and what was created below it, as far as nothing else waits for that. Whatever waits
        for the task itself cannot go on, until another one is put in its place (`supersede`). Refused
        (`version_conflict`) when the task has ended."""
        return await self._send(run, CancelTask(text("task", task), text("reason", reason)), tenant, project)

    async def resolve(
        self, run: str, task: str, *, tenant: str = DEFAULT_TENANT, project: str = DEFAULT_PROJECT, note: str = ""
    ) -> Answer:
        """A blocked task goes on; `note` reaches its worker (`TaskContext.problem`). Refused (`version_conflict`) when
        it is not blocked; of a run that is blocked by a limit, `set_limits`."""
        return await self._send(run, ResolveBlock(text("task", task), text("note", note)), tenant, project)

    async def retry(
        self, run: str, task: str, *, tenant: str = DEFAULT_TENANT, project: str = DEFAULT_PROJECT, note: str = ""
    ) -> Answer:
        """A failed task runs again, with all its attempts; a run that failed goes on. `note` reaches its worker
        (`TaskContext.problem`). Refused (`version_conflict`) when it has not failed."""
        return await self._send(run, RetryTask(text("task", task), text("note", note)), tenant, project)

    async def supersede(
        self,
        run: str,
        task: str,
        replacement: TaskSpec,
        *,
        tenant: str = DEFAULT_TENANT,
        project: str = DEFAULT_PROJECT,
        expected_graph_revision: int | None = None,
    ) -> Superseded:
        """Put another task in the place of one that is not verified: those that wait for the old one wait for it.

        A replacement without an id gets a fresh one; the answer names it. `expected_graph_revision`: refuse
        (`version_conflict`) when the graph has changed since.

        Refused: `version_conflict` when the task is verified, skipped or superseded already, `idempotency_conflict`
        when the id is taken, `weaker_verifier`, and the codes of `Dagbok.start` for a graph that cannot be. Raises
        `InvalidInput` (`invalid_spec`) for a value that is no JSON, and for a pool as `Dagbok.start` does.
        """
        typed("replacement", replacement, TaskSpec)
        if expected_graph_revision is not None:
            whole("expected_graph_revision", expected_graph_revision, least=-MAX_COUNT)
        spec = encode_spec(replacement, derived_id=secrets.token_hex(16), pool=self._pool)
        self._host.check_pool(spec.pool)
        command = SupersedeTask(text("task", task), spec, expected_graph_revision)
        answer = await self._send(run, command, tenant, project)
        return Superseded(**msgspec.structs.asdict(answer), replacement=spec.id)

    async def amend(
        self,
        run: str,
        *,
        tenant: str = DEFAULT_TENANT,
        project: str = DEFAULT_PROJECT,
        verifiers: Mapping[str, VerifierPin] | None = None,
        failure_policy: FailurePolicy | None = None,
        max_depth: int | None = None,
        max_decompositions: int | None = None,
        reason: str = "",
    ) -> Answer:
        """Change what the run is bound to, on record; what is not named stays as it is.

        `verifiers`: by key, what the run is bound to from now on; `pins` has those of this program. Reviews that run
        under a verifier that changes begin anew. `failure_policy`, `max_depth`, `max_decompositions`: see
        `Dagbok.start`.

        Refused: `version_conflict` when all of it is so already, `config_mismatch` when a verifier would not judge any
        more what it did, `invalid_spec` for a number that is none.
        """
        check_pinned(failure_policy, max_depth, max_decompositions)
        pins = {} if verifiers is None else dict(typed("verifiers", verifiers, Mapping))
        for key, pin in pins.items():
            typed(f"the verifier {text('a key of verifiers', key)}", pin, VerifierPin)
        command = AmendRun(pins, failure_policy, max_depth, max_decompositions, text("reason", reason))
        return await self._send(run, command, tenant, project)

    async def set_limits(
        self,
        run: str,
        limits: Limits | None = None,
        *,
        tenant: str = DEFAULT_TENANT,
        project: str = DEFAULT_PROJECT,
        **changes: Unpack[LimitChanges],
    ) -> Answer:
        """Raise limits by name, or set those that the run does not have: `set_limits(run, max_tokens=20_000)`. The
        others stay.

        `limits`: the same in one value; what it does not name, or names as None, stays as well. A run that was blocked
        by a limit goes on.

        Raises `Refused` when one would become smaller (`config_mismatch`), or when one that the run does not have would
        begin below what is used and reserved (`budget_exhausted`); `InvalidInput` (`usage`) when none is named, or one
        twice; `pydantic.ValidationError` for what is no number of a limit.
        """
        return await self._send(run, limits_command(limits, changes), tenant, project)

    def pins(self, *keys: str) -> Mapping[str, VerifierPin]:
        """The verifiers of this program as a run can be bound to them; of these keys, or all. Raises `Refused`
        (`verifier_unavailable`)."""
        found = self._registry.pins()
        for key in keys:
            if text("key", key) not in found:
                told = f"this program has no verifier {key!r}{did_you_mean(key, found)}"
                raise Refused(Code.VERIFIER_UNAVAILABLE, told)
        return {key: found[key] for key in keys} if keys else found

    async def _send(self, run: str, command: RunCommand, tenant: str, project: str) -> Answer:
        check_whose(run, tenant, project)
        envelope = client_command(run, command, tenant=tenant, project=project, user=self._user)
        answer = await self._host.ask(envelope)
        if not answer.accepted:
            raise Refused(Code(answer.code or Code.INTERNAL_ERROR), answer.reason, advice=answer.advice or None)
        return answer


def check_whose(run: str, tenant: str, project: str) -> None:
    """Raises `InvalidInput`: `usage` for a run that is no text, `invalid_spec` for a tenant or project that is no
    id."""
    text("run", run)
    check_id("tenant", tenant)
    check_id("project", project)
