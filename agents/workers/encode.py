"""From what people write to what the log keeps: specs, outcomes, reports and failures.

Bytes above 32 KiB go to the artifact store before anything refers to them (`docs/design/architecture.md`, section 3.7).
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from pydantic import ValidationError

from dagbok.agents.workers.frames import users_traceback
from dagbok.agents.workers.terminal import Terminal
from dagbok.events.canonical import canonical, sha256_hex
from dagbok.events.codes import Code
from dagbok.events.envelope import Dispatch
from dagbok.events.errors import DagbokError, InvalidInput
from dagbok.events.ids import derive
from dagbok.events.run import values
from dagbok.events.run.values import (
    MAX_INLINE_BYTES,
    MAX_MESSAGE_CHARS,
    MAX_TRACEBACK_CHARS,
    NULL,
    ArtifactItem,
    Blocked,
    Candidate,
    Decompose,
    Failure,
    OutcomeData,
    Report,
    Spec,
    Usage,
    VerifierPin,
)
from dagbok.events.specs import Artifact, Outcome, TaskLimits, TaskSpec, Verdict
from dagbok.events.when import When
from dagbok.events.written import TITLE, problems_of

PutArtifact = Callable[[bytes], object]
"""Stores bytes under their hash, durably, in the scope of the run. Blocks."""


def encode_spec(spec: TaskSpec, *, derived_id: str, pool: str) -> Spec:
    """The spec as the log keeps it; `derived_id` and `pool` where the author gave none."""
    return Spec(
        id=spec.id or derived_id,
        goal=spec.goal,
        worker=spec.worker,
        verifier=spec.verifier,
        depends_on=tuple([edge.task if isinstance(edge, When) else edge for edge in spec.depends_on]),
        proposal_verifier=spec.proposal_verifier,
        contract=_raw("contract of a TaskSpec", spec.contract, Code.INVALID_SPEC),
        inputs=_raw("inputs of a TaskSpec", spec.inputs, Code.INVALID_SPEC),
        metadata=_raw("metadata of a TaskSpec", spec.metadata, Code.INVALID_SPEC),
        pool=spec.pool or pool,
        priority=spec.priority,
        timeout_ms=None if spec.timeout_s is None else max(1, round(spec.timeout_s * 1000)),
        lease_ms=max(1, round(spec.lease_s * 1000)),
        max_attempts=spec.max_attempts,
        when=tuple([edge.condition for edge in spec.depends_on if isinstance(edge, When)]),
        child_verifiers=spec.child_verifiers,
        limits=None if spec.limits is None else _limits(spec.limits),
        session=None if spec.session is None else values.SessionSeed(**dict(spec.session)),
        join=spec.join,
    )


def _limits(limits: TaskLimits) -> values.TaskLimits:
    return values.TaskLimits(limits.tokens, str(limits.cost), limits.context_bytes, limits.context_artifacts)


def encode_outcome(outcome: object, command_id: str, dispatch: Dispatch, put: PutArtifact) -> OutcomeData:
    """The outcome as the log keeps it. Raises `InvalidInput` (`invalid_outcome`) for anything a worker may not
    return."""
    if not isinstance(outcome, Outcome):
        raise _invalid(f"a worker returns an Outcome, not {type(outcome).__name__}")
    if outcome.kind == "candidate":
        items = tuple([_item(name, artifact, put) for name, artifact in outcome.artifacts.items()])
        return Candidate(items, _raw("outputs of an Outcome", outcome.outputs))
    if outcome.kind == "blocked":
        if not outcome.reason.strip():
            raise _invalid("a blocked outcome says why")
        return Blocked(_text("reason", outcome.reason))
    specs = [
        encode_spec(task, derived_id=derive(command_id, index), pool=dispatch.pool)
        for index, task in enumerate(outcome.tasks)
    ]
    return Decompose(
        tasks=tuple(specs),
        reuse=outcome.reuse,
        rationale=_text("rationale", outcome.rationale),
        composition_contract=_raw("composition_contract of an Outcome", outcome.composition_contract),
        expected_graph_revision=outcome.expected_graph_revision,
    )


def encode_usage(outcome: object) -> Usage:
    """What the worker says that it used; nothing when it does not say."""
    said = outcome.usage if isinstance(outcome, Outcome) else None
    return Usage() if said is None else Usage(said.tokens, str(said.cost))


def encode_report(verdict: object, dispatch: Dispatch, pin: VerifierPin) -> Report:
    """The report of a verifier's answer, bound to what was dispatched. Raises `InvalidInput` for any other answer."""
    if isinstance(verdict, bool):
        verdict = Verdict.passed() if verdict else Verdict.failed(None)
    if not isinstance(verdict, Verdict):
        raise _invalid(f"a verifier returns a bool or a Verdict, not {type(verdict).__name__}")
    return Report(
        kind="candidate" if dispatch.proposal is None else "decomposition",
        verdict=verdict.verdict,
        verifier=dispatch.key,
        version=pin.version,
        digest=pin.digest,
        assurance=pin.assurance,
        input_hash=dispatch.input_hash,
        subject=dispatch.subject,
        diagnostics=_raw("diagnostics of a Verdict", verdict.diagnostics),
        evidence=_raw("evidence of a Verdict", verdict.evidence),
    )


def encode_failure(error: BaseException) -> Failure:
    """The failure of an exception: type, message and the last frames of its traceback (`users_traceback`). What dagbok
    itself says can never succeed is terminal, and so are `Terminal` and a model of dagbok's that was built wrongly;
    everything else may be tried again."""
    terminal, code, message = _judged(error)
    return Failure(
        "terminal" if terminal else "retryable",
        code,
        type(error).__name__,
        _shortened(message, MAX_MESSAGE_CHARS),
        _shortened(users_traceback(error), MAX_TRACEBACK_CHARS),
    )


def _judged(error: BaseException) -> tuple[bool, Code, str]:
    """Whether trying again is of no use, the code, and what to say."""
    if isinstance(error, DagbokError):
        return not error.retry, error.code, error.message
    if isinstance(error, ValidationError) and error.title.startswith(TITLE):
        # The same code builds the same wrong value. A model of the user's own may have read what somebody else wrote
        # (a language model, say), and read another text the next time.
        model = error.title.removeprefix(TITLE)
        code = Code.INVALID_SPEC if model == TaskSpec.__name__ else Code.INVALID_OUTCOME
        return True, code, f"{model} is not valid: {problems_of(error)}"
    return isinstance(error, Terminal), Code.WORKER_FAILED, _said(error)


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as broken:
        return f"the exception has no message: its __str__ raised {type(broken).__name__}"


def _shortened(text: str, limit: int) -> str:
    """Text that any log can keep: file names that are no Unicode come as surrogates, which no JSON has."""
    if len(text) > limit:
        half = limit // 2
        text = f"{text[:half]} … {len(text) - 2 * half} characters left out … {text[-half:]}"
    return text.encode(errors="backslashreplace").decode()


def _item(name: str, artifact: Artifact, put: PutArtifact) -> ArtifactItem:
    data, media_type = _bytes_of(artifact)
    inline = data if len(data) <= MAX_INLINE_BYTES else None
    if inline is None:
        put(data)
    name, media_type = _text("name of an artifact", name), _text("media type", media_type)
    return ArtifactItem(name, sha256_hex(data), len(data), media_type, inline)


def _bytes_of(artifact: Artifact) -> tuple[bytes, str]:
    content, media_type = artifact.content, artifact.media_type
    if isinstance(content, bytes | bytearray | memoryview):
        return bytes(content), media_type or "application/octet-stream"
    if isinstance(content, str) and media_type is not None and "json" not in media_type:
        return _text("content", content).encode(), media_type
    return canonical(content, "the content of an artifact"), media_type or "application/json"


def _text(what: str, value: object) -> str:
    if not isinstance(value, str):
        raise _invalid(f"a {what} is text, not {type(value).__name__}")
    if not value.isascii():
        canonical(value, f"the {what}")  # refuses surrogates
    return value


def _raw(what: str, value: object, code: Code = Code.INVALID_OUTCOME) -> msgspec.Raw:
    return NULL if value is None else msgspec.Raw(canonical(value, what, code))


def _invalid(message: str) -> InvalidInput:
    return InvalidInput(message, code=Code.INVALID_OUTCOME)
