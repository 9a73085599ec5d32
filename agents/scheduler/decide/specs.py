"""How task specs enter a graph: brought to their canonical form, hashed, and checked against what the run is bound
to."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from dagbok.agents.scheduler.decide.conditions import check_conditions
from dagbok.agents.scheduler.decide.payload import MAX_NUMBER, canonical_payload, is_cost
from dagbok.events.canonical import SHA256, sha256_hex
from dagbok.events.codes import Code
from dagbok.events.errors import Refused
from dagbok.events.ids import ID_PATTERN
from dagbok.events.near import did_you_mean
from dagbok.events.run.values import NULL, Condition, Pinned, SessionSeed, Spec, SpecEntry, TaskLimits
from dagbok.projections.task_graph.shared import shared

MAX_KEY_CHARS = 256
MAX_PRIORITY = 2**31 - 1


def admit(spec: Spec, created_by: str | None = None) -> SpecEntry:
    """The spec with canonical payloads and each dependency once, and its digest. Raises `Refused` (`invalid_spec`)."""
    _check_shape(spec)
    canonical = msgspec.structs.replace(
        spec,
        worker=shared(spec.worker),
        verifier=shared(spec.verifier),
        pool=shared(spec.pool),
        depends_on=tuple(dict.fromkeys(spec.depends_on)),
        when=tuple([_condition(spec, condition) for condition in spec.when]),
        contract=_payload(spec, "contract", spec.contract),
        inputs=_payload(spec, "inputs", spec.inputs),
        metadata=_payload(spec, "metadata", spec.metadata),
    )
    check_conditions(canonical)
    return SpecEntry(canonical, sha256_hex(msgspec.json.encode(canonical)), created_by)


def check_verifiers(pinned: Pinned, specs: Iterable[Spec]) -> None:
    """Every verifier a spec names is one the run is bound to, for what it is to judge."""
    for spec in specs:
        own = pinned.verifiers.get(spec.verifier)
        unbound = [key for key in spec.child_verifiers or () if key not in pinned.verifiers]
        if own is None or "candidate" not in own.judges:
            unbound = [spec.verifier]
        if unbound:
            hint = did_you_mean(unbound[0], pinned.verifiers)
            told = f"task {spec.id}: the run is not bound to verifier {unbound[0]!r}{hint}"
            raise Refused(Code.VERIFIER_UNAVAILABLE, told)
        if spec.proposal_verifier is not None:
            judge = pinned.verifiers.get(spec.proposal_verifier)
            if judge is None or "decomposition" not in judge.judges:
                judges = [key for key, pin in pinned.verifiers.items() if "decomposition" in pin.judges]
                hint = did_you_mean(spec.proposal_verifier, judges)
                told = f"the run is not bound to a verifier {spec.proposal_verifier!r} of decompositions{hint}"
                raise Refused(Code.VERIFIER_UNAVAILABLE, f"task {spec.id}: {told}")


def _check_shape(spec: Spec) -> None:
    problem = _shape_problem(spec)
    if problem:
        raise Refused(Code.INVALID_SPEC, f"task {spec.id[:140]!r}: {problem}")


def _shape_problem(spec: Spec) -> str | None:
    if ID_PATTERN.fullmatch(spec.id) is None:
        return "an id is 1 to 128 of the characters A-Z a-z 0-9 . _ -"
    if not spec.goal.strip():
        return "the goal is blank"
    if not (_is_key(spec.worker) and _is_key(spec.verifier) and _is_key(spec.pool)):
        name = next(name for name in ("worker", "verifier", "pool") if not _is_key(getattr(spec, name)))
        return f"the {name} is blank or longer than {MAX_KEY_CHARS} characters"
    if spec.id in spec.depends_on:
        return "it depends on itself"
    if not (_is_count(spec.timeout_ms) and _is_count(spec.lease_ms) and _is_count(spec.max_attempts)):
        return f"timeout, lease and attempts must be above zero and at most {MAX_NUMBER}"
    if abs(spec.priority) > MAX_PRIORITY:
        return f"the priority is not within {MAX_PRIORITY} of zero"
    if spec.session is not None and not _is_session(spec.session):
        return "its session is none that was ever put down"
    return None if spec.limits is None else _limits_problem(spec.limits)


def _is_session(seed: SessionSeed) -> bool:
    """Whether it can be one: nobody reads other runs here."""
    hashes = SHA256.fullmatch(seed.digest) and SHA256.fullmatch(seed.sha256)
    ids = ID_PATTERN.fullmatch(seed.run) and ID_PATTERN.fullmatch(seed.task)
    return bool(hashes and ids) and 0 < seed.turn <= MAX_NUMBER and 0 < seed.size_bytes <= MAX_NUMBER


def _limits_problem(limits: TaskLimits) -> str | None:
    numbers = (limits.context_bytes, limits.context_artifacts)
    if not 0 <= limits.tokens <= MAX_NUMBER or not is_cost(limits.cost) or not all(map(_is_count, numbers)):
        return f"limits are counts up to {MAX_NUMBER}, and a cost is a decimal number"
    return None


def _condition(spec: Spec, condition: Condition) -> Condition:
    values = [_payload(spec, "a value to compare with", value) for value in condition.values]
    return msgspec.structs.replace(condition, values=tuple(values))


def _is_key(text: str) -> bool:
    return len(text) <= MAX_KEY_CHARS and not text.isspace() and text != ""


def _is_count(number: int | None) -> bool:
    return number is None or 0 < number <= MAX_NUMBER


def _payload(spec: Spec, name: str, text: msgspec.Raw) -> msgspec.Raw:
    if text is NULL:
        return NULL
    return canonical_payload(f"task {spec.id}, {name}", text, Code.INVALID_SPEC)
