"""What a worker or a verifier is handed, made without a run: the classes are those of production, filled from a
dispatch like the one that a run would send, and what stands in it has passed the encoding that leads to the log."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final, get_args

import msgspec
from pydantic import ValidationError

from dagbok.agents.workers.context import Candidate, TaskContext
from dagbok.agents.workers.encode import encode_outcome, encode_spec
from dagbok.agents.workers.sessions.memory import session_in_memory
from dagbok.events import arguments
from dagbok.events.canonical import Json, canonical, sha256_hex
from dagbok.events.codes import Code
from dagbok.events.envelope import Dispatch, Input, Problem
from dagbok.events.errors import InvalidInput
from dagbok.events.ids import check_id
from dagbok.events.run import values
from dagbok.events.run.values import NULL, ArtifactItem, ArtifactRef, Phase, SecurityContext
from dagbok.events.specs import Artifact, Content, Outcome, TaskSpec
from dagbok.events.written import problems_of
from dagbok.testing.make import CHECK

LOCAL: Final = SecurityContext("local")
TENANT: Final = "local"
PROJECT: Final = "default"


def context(
    spec: TaskSpec | None = None,
    *,
    goal: str | None = None,
    inputs: Json = None,
    contract: Json = None,
    metadata: Json = None,
    dependencies: Mapping[str, Content | Artifact | Outcome] | None = None,
    phase: Phase = "solve",
    composition: Json = None,
    session: Json = None,
    diagnostics: Json = None,
    problem: Problem | None = None,
    attempt: int | None = None,
    epoch: int | None = None,
    cancelled: bool = False,
    tenant: str = TENANT,
    project: str = PROJECT,
    run_id: str = "run",
    task_id: str | None = None,
    graph_revision: int = 1,
    security: SecurityContext = LOCAL,
) -> TaskContext:
    """The `TaskContext` that a worker or verifier would be handed, to be passed to it in a test. What it notes by
    `use` is found in `used`; set `cancelled`, here or while it runs, to see whether it looks.

    `spec`: the task itself; what is given beside it replaces what stands there. `dependencies`: by task, what it
    published: a JSON value or bytes (its artifact `result`), an `Artifact`, or the `Outcome` of its worker with all
    artifacts. Nothing else can be read, as in a run. `diagnostics`: what the verifier said of the candidate before;
    `problem`: instead, all that went wrong before. `attempt`: 1, or 2 when something went wrong before; `epoch`: the
    same as `attempt`. `session`: what the worker put down before, in an earlier attempt.

    Raises `InvalidInput` for a value that no run would take (`invalid_spec`, `invalid_outcome`), for a dependency whose
    outcome is no candidate, for an argument of another type or out of its range (`attempt` and `epoch` count from 1),
    and when both `diagnostics` and `problem` are given (`usage`).
    """
    check_id("tenant", tenant)
    check_id("project", project)
    arguments.one_of("phase", phase, get_args(Phase))
    arguments.typed("cancelled", cancelled, bool)
    arguments.typed("security", security, SecurityContext)
    if problem is not None:
        arguments.typed("problem", problem, Problem)
    published = {} if dependencies is None else arguments.typed("dependencies", dependencies, Mapping)
    if diagnostics is not None:
        if problem is not None:
            raise InvalidInput("both diagnostics and a problem", code=Code.USAGE, advice="put them into the problem")
        problem = Problem(Code.VERIFICATION_FAILED, diagnostics=_raw(diagnostics))
    given = {"goal": goal, "inputs": inputs, "contract": contract, "metadata": metadata}
    written = _spec_of(spec, {name: value for name, value in given.items() if value is not None})
    id = check_id("task_id", task_id) if task_id is not None else written.id or "task"
    begun = 1 if problem is None else 2
    number = begun if attempt is None else arguments.whole("attempt", attempt, least=1)
    memory = Memory()
    offered = msgspec.structs.replace(
        dispatch_of(written, id),
        tenant=tenant,
        project=project,
        run=arguments.text("run_id", run_id),
        epoch=number if epoch is None else arguments.whole("epoch", epoch, least=1),
        phase=phase,
        attempt=number,
        context=security,
        graph_revision=arguments.whole("graph_revision", graph_revision),
        inputs=tuple([item for task, found in published.items() for item in memory.published(task, found)]),
        composition=_raw(composition),
        problem=problem,
    )
    made = TaskContext(offered, memory.read)
    made.open_session = partial(session_in_memory, session)
    made.cancelled = cancelled
    return made


def candidate_of(outcome: object, *, task_id: str = "task") -> Candidate:
    """The `Candidate` that a verifier would be handed when a worker returns `outcome`: its artifacts and `outputs`, or
    the tasks that it proposes. Large artifacts lie in memory.

    Raises `InvalidInput` (`invalid_outcome`, `invalid_spec`) for what no worker may return, and for a blocked outcome:
    nobody judges one.
    """
    memory = Memory()
    offered = dispatch_of(_spec_of(None, {}), check_id("task_id", task_id))
    said = encode_outcome(outcome, task_id, offered, memory.put)
    if isinstance(said, values.Blocked):
        raise InvalidInput("a blocked outcome is not judged", code=Code.INVALID_OUTCOME)
    if isinstance(said, values.Decompose):
        offered = msgspec.structs.replace(offered, proposal=said)
    else:
        items = tuple([_input(task_id, item) for item in said.artifacts])
        offered = msgspec.structs.replace(offered, candidate=items, outputs=said.outputs)
    return Candidate(offered, memory.read)


class Memory:
    """The bytes of artifacts that are too large to travel with a dispatch, by hash: an artifact store for one test."""

    def __init__(self) -> None:
        self._stored: dict[str, bytes] = {}

    def put(self, data: bytes) -> None:
        """Keep the bytes."""
        self._stored[sha256_hex(data)] = data

    def read(self, item: Input) -> bytes:
        """The bytes of an artifact that was put here, or that the dispatch carries."""
        return self._stored[item.ref.sha256] if item.inline is None else item.inline

    def published(self, task: str, found: Content | Artifact | Outcome) -> tuple[Input, ...]:
        """The artifacts of a verified task. Raises `InvalidInput` (`invalid_outcome`) when there are none."""
        check_id("the task of a dependency", task)
        if isinstance(found, Artifact):
            found = Outcome.candidate(found.content, media_type=found.media_type)
        outcome = found if isinstance(found, Outcome) else Outcome.candidate(found)
        said = encode_outcome(outcome, task, dispatch_of(_spec_of(None, {}), task), self.put)
        if not isinstance(said, values.Candidate):
            message = f"task {task} has published nothing: its outcome is {outcome.kind}"
            raise InvalidInput(message, code=Code.INVALID_OUTCOME, advice="give it a candidate")
        return tuple([_input(task, item) for item in said.artifacts])


def dispatch_of(spec: TaskSpec, id: str) -> Dispatch:
    """The first attempt at a task, in a run that has nothing else."""
    encoded = encode_spec(spec, derived_id=id, pool="default")
    return Dispatch(
        kind="work",
        tenant=TENANT,
        project=PROJECT,
        run="run",
        task=id,
        epoch=1,
        phase="solve",
        pool=encoded.pool,
        key=encoded.worker,
        input_hash="",
        opened_at=(0, 0),
        spec=encoded,
        attempt=1,
        context=LOCAL,
        graph_revision=1,
    )


def _spec_of(spec: TaskSpec | None, given: Mapping[str, Json]) -> TaskSpec:
    plain: Mapping[str, Json] = {"goal": "do it", "worker": "work", "verifier": CHECK}
    if spec is not None:
        arguments.typed("spec", spec, TaskSpec)
        plain = {name: getattr(spec, name) for name in spec.model_fields_set}
    try:
        return TaskSpec.model_validate({**plain, **given})
    except ValidationError as error:
        raise InvalidInput(problems_of(error), code=Code.INVALID_SPEC) from error


def _input(task: str, item: ArtifactItem) -> Input:
    return Input(task, ArtifactRef(item.name, item.sha256, item.size_bytes, item.media_type), item.inline)


def _raw(value: Json) -> msgspec.Raw:
    return NULL if value is None else msgspec.Raw(canonical(value))
