"""What workers and verifiers are handed: the task, what it may read, and what went wrong before.

JSON values are `Any` here, as in the standard library: their shape is known to the author of the task alone. `read`
gives them a type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, TypeVar

import msgspec
import orjson

from dagbok.events.envelope import Dispatch, Input, Problem
from dagbok.events.run.values import ArtifactRef, SecurityContext
from dagbok.events.specs import TaskSpec

T = TypeVar("T")

ReadArtifact = Callable[[Input], bytes]
"""Gives the bytes of an artifact that the dispatch names, proven by hash and length. Blocks; any thread."""


class ArtifactView:
    """An artifact that may be read: `json()`, `text()`, `data()`. Bytes are fetched when they are first asked for."""

    def __init__(self, item: Input, read: ReadArtifact) -> None:
        self._item, self._read = item, read

    @property
    def task(self) -> str:
        """The task that made it."""
        return self._item.task

    @property
    def ref(self) -> ArtifactRef:
        """Name, SHA-256, size and media type."""
        return self._item.ref

    @property
    def name(self) -> str:
        """`result`, unless it was named otherwise."""
        return self._item.ref.name

    def data(self) -> bytes:
        """The bytes. Raises `ArtifactDamaged` or `ArtifactNotFound`."""
        return self._data

    def text(self) -> str:
        """The bytes as UTF-8."""
        return self._data.decode()

    def json(self) -> Any:
        """The JSON value. `read` gives it with a type."""
        return orjson.loads(self._data)

    def read(self, type: type[T]) -> T:
        """The JSON value as `type` (whatever msgspec decodes: dataclasses, structs, TypedDicts, builtins).

        Raises `msgspec.ValidationError` when it does not fit.
        """
        return msgspec.json.decode(self._data, type=type)

    @cached_property
    def _data(self) -> bytes:
        return self._read(self._item)


class Artifacts(Mapping[str, ArtifactView]):
    """The artifacts of one task by name."""

    def __init__(self, views: Mapping[str, ArtifactView]) -> None:
        self._views = views

    def __getitem__(self, name: str) -> ArtifactView:
        return self._views[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._views)

    def __len__(self) -> int:
        return len(self._views)

    def json(self, name: str = "result") -> Any:
        """The JSON value of one of them."""
        return self._views[name].json()

    def read(self, type: type[T], name: str = "result") -> T:
        """The JSON value of one of them, as `type`: see `ArtifactView.read`."""
        return self._views[name].read(type)

    def text(self, name: str = "result") -> str:
        """The text of one of them."""
        return self._views[name].text()

    def data(self, name: str = "result") -> bytes:
        """The bytes of one of them."""
        return self._views[name].data()


class TaskContext:
    """A task as its worker or verifier sees it.

    - `goal`, `inputs`, `contract`, `metadata`: as the author of the task wrote them.
    - `phase`: `solve`, or `integrate` when the task was decomposed and its children are verified.
    - `dependencies`: by task, the published artifacts of what it depends on (in phase `integrate`: of its children
      too).
    - `problem`, `diagnostics`: what went wrong before, if anything.
    - `attempt`: 1 for the first try, one more after each failure; `epoch`: grows with every attempt of any kind.
    - `cancelled`: true once nobody wants the result any more; look at it in long loops.
    """

    def __init__(self, dispatch: Dispatch, read: ReadArtifact) -> None:
        self._dispatch, self._read = dispatch, read
        self.cancelled = False

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
    def metadata(self) -> Any:
        """Whatever the author noted."""
        return _json(self._dispatch.spec.metadata)

    @cached_property
    def dependencies(self) -> Mapping[str, Artifacts]:
        """The published artifacts of the tasks this one depends on, by task; nothing else can be read."""
        grouped: dict[str, dict[str, ArtifactView]] = {}
        for item in self._dispatch.inputs:
            grouped.setdefault(item.task, {})[item.ref.name] = ArtifactView(item, self._read)
        return {task: Artifacts(views) for task, views in grouped.items()}

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
        return tuple(
            # Checked when the log took them; its limits are wider than those of the form that people write.
            TaskSpec.model_construct(
                id=spec.id,
                goal=spec.goal,
                worker=spec.worker,
                verifier=spec.verifier,
                depends_on=spec.depends_on,
                inputs=_json(spec.inputs),
                contract=_json(spec.contract),
                pool=spec.pool,
                metadata=_json(spec.metadata),
                proposal_verifier=spec.proposal_verifier,
                priority=spec.priority,
                timeout_s=None if spec.timeout_ms is None else spec.timeout_ms / 1000,
                lease_s=spec.lease_ms / 1000,
                max_attempts=spec.max_attempts,
            )
            for spec in proposal.tasks
        )

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
