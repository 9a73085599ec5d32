"""What workers and verifiers are handed: the task, what it may read, and what went wrong before.

JSON values are `Any` here, as in the standard library: their shape is known to the author of the task alone.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import cached_property
from typing import Any

import msgspec
import orjson

from dagbok.agents.workers.sessions.memory import session_in_memory
from dagbok.agents.workers.sessions.session import TaskSession
from dagbok.agents.workers.views import Artifacts, ArtifactView, Dependencies, ReadArtifact
from dagbok.events.envelope import Dispatch, Problem
from dagbok.events.run.amounts import plus
from dagbok.events.run.values import SecurityContext, Spec, Usage
from dagbok.events.specs import SessionFork, TaskLimits, TaskSpec
from dagbok.events.specs import Usage as WrittenUsage
from dagbok.events.when import When, written_as


class TaskContext:
    """A task as its worker or verifier sees it.

    - `goal`, `inputs`, `contract`, `metadata`: as the author of the task wrote them.
    - `phase`: `solve`, or `integrate` when the task was decomposed and its children are verified.
    - `dependencies`: by task, the published artifacts of what it depends on (in phase `integrate`: of its children
      too). What took the place of a task is found under either name; a skipped one is not there.
    - `composition`: in phase `integrate`, the composition contract of the decomposition.
    - `problem`, `diagnostics`: what went wrong before, if anything.
    - `attempt`: 1 for the first try, one more after each failure; `epoch`: grows with every attempt of any kind.
    - `session`: what this task keeps from turn to turn and from attempt to attempt (`TaskSession`).
    - `cancelled`: true once nobody wants the result any more; look at it in long loops.
    """

    def __init__(self, dispatch: Dispatch, read: ReadArtifact) -> None:
        self._dispatch, self._read = dispatch, read
        self._used = Usage()
        self.open_session: Callable[[], TaskSession] = session_in_memory
        self.cancelled = False

    @cached_property
    def session(self) -> TaskSession:
        """What this task keeps from turn to turn and from attempt to attempt. Made when it is first asked for: most
        tasks keep none."""
        return self.open_session()

    def use(self, *, tokens: int = 0, cost: Decimal | int | str = "0") -> None:
        """Note what this attempt used, as often as something is used. The sum counts however the attempt ends, also
        when it raises or is handed back; what the outcome itself says is added."""
        checked = WrittenUsage(tokens=tokens, cost=cost)
        self._used = plus(self._used, Usage(checked.tokens, str(checked.cost)))

    @property
    def used(self) -> Usage:
        """What was noted so far."""
        return self._used

    @property
    def tenant(self) -> str:
        """The tenant of the run."""
        return self._dispatch.tenant

    @property
    def project(self) -> str:
        """The project of the run."""
        return self._dispatch.project

    @property
    def run_id(self) -> str:
        """The run."""
        return self._dispatch.run

    @property
    def task_id(self) -> str:
        """The task, unique in its run."""
        return self._dispatch.task

    @property
    def security(self) -> SecurityContext:
        """For whom the run acts."""
        return self._dispatch.context

    @property
    def goal(self) -> str:
        """What is to be done."""
        return self._dispatch.spec.goal

    @property
    def phase(self) -> str:
        """`solve` or `integrate`."""
        return self._dispatch.phase

    @property
    def attempt(self) -> int:
        """1 for the first try."""
        return self._dispatch.attempt

    @property
    def epoch(self) -> int:
        """The number of this attempt, never reset."""
        return self._dispatch.epoch

    @property
    def graph_revision(self) -> int:
        """The revision of the graph when this attempt was sent, for `Outcome.decompose(expected_graph_revision=)`."""
        return self._dispatch.graph_revision

    @cached_property
    def inputs(self) -> Any:
        """What the author hands to the worker."""
        return _json(self._dispatch.spec.inputs)

    @cached_property
    def contract(self) -> Any:
        """What the result is held to."""
        return _json(self._dispatch.spec.contract)

    @cached_property
    def composition(self) -> Any:
        """What the children of the decomposition are to make up together; none before it, or when it did not say."""
        return _json(self._dispatch.composition)

    @cached_property
    def metadata(self) -> Any:
        """Whatever the author noted."""
        return _json(self._dispatch.spec.metadata)

    @cached_property
    def dependencies(self) -> Dependencies:
        """The published artifacts of the tasks this one depends on, by task; nothing else can be read."""
        grouped: dict[str, dict[str, ArtifactView]] = {}
        for item in self._dispatch.inputs:
            grouped.setdefault(item.task, {})[item.ref.name] = ArtifactView(item, self._read)
        found = {task: Artifacts(views) for task, views in grouped.items()}
        return Dependencies(found, self._dispatch.renamed)

    @property
    def problem(self) -> Problem | None:
        """What went wrong before: code, failure, diagnostics, reason, note."""
        return self._dispatch.problem

    @cached_property
    def diagnostics(self) -> Any:
        """What the verifier said of the last candidate, else the message of the last failure, else none."""
        problem = self._dispatch.problem
        if problem is None:
            return None
        if problem.failure is not None:
            return problem.failure.message
        return _json(problem.diagnostics) or problem.reason or problem.note or None


class Candidate(Artifacts):
    """What a verifier judges: the artifacts of a candidate with its control values, or the tasks of a decomposition."""

    def __init__(self, dispatch: Dispatch, read: ReadArtifact) -> None:
        super().__init__({item.ref.name: ArtifactView(item, read) for item in dispatch.candidate})
        self._dispatch = dispatch

    @property
    def is_decomposition(self) -> bool:
        """True: judge `tasks`, there are no artifacts."""
        return self._dispatch.proposal is not None

    @cached_property
    def outputs(self) -> Any:
        """The control values of the candidate."""
        return _json(self._dispatch.outputs)

    @cached_property
    def tasks(self) -> tuple[TaskSpec, ...]:
        """The tasks that a decomposition proposes, with everything that the worker wrote, ids and pools filled in."""
        proposal = self._dispatch.proposal
        if proposal is None:
            return ()
        return tuple([_as_written(spec) for spec in proposal.tasks])

    @property
    def reuse(self) -> tuple[str, ...]:
        """The existing tasks that a decomposition also waits for."""
        return self._dispatch.proposal.reuse if self._dispatch.proposal is not None else ()

    @property
    def rationale(self) -> str:
        """Why the worker proposes it."""
        return self._dispatch.proposal.rationale if self._dispatch.proposal is not None else ""


def _json(raw: msgspec.Raw) -> Any:
    return orjson.loads(bytes(raw))


def _as_written(spec: Spec) -> TaskSpec:
    """Checked when the log took it; its limits are wider than those of the form that people write."""
    conditions: dict[str, list[When]] = {}
    for condition in spec.when:
        conditions.setdefault(condition.task, []).append(written_as(condition))
    edges = [edge for dep in spec.depends_on for edge in conditions.get(dep, [dep])]
    limits, session = spec.limits, spec.session
    return TaskSpec.model_construct(
        id=spec.id,
        goal=spec.goal,
        worker=spec.worker,
        verifier=spec.verifier,
        depends_on=tuple(edges),
        join=spec.join,
        inputs=_json(spec.inputs),
        contract=_json(spec.contract),
        pool=spec.pool,
        metadata=_json(spec.metadata),
        proposal_verifier=spec.proposal_verifier,
        priority=spec.priority,
        timeout_s=None if spec.timeout_ms is None else spec.timeout_ms / 1000,
        lease_s=spec.lease_ms / 1000,
        max_attempts=spec.max_attempts,
        child_verifiers=spec.child_verifiers,
        limits=None if limits is None else TaskLimits.model_construct(**msgspec.structs.asdict(limits)),
        session=None if session is None else SessionFork.model_construct(**msgspec.structs.asdict(session)),
    )
