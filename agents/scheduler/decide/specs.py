"""How task specs enter a graph: brought to their canonical form, hashed, and checked against what the run is bound
to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from dagbok.agents.scheduler.decide.payload import canonical_payload
from dagbok.events.canonical import sha256_hex
from dagbok.events.codes import Code
from dagbok.events.errors import Refused
from dagbok.events.ids import ID_PATTERN
from dagbok.events.run.values import NULL, Pinned, Spec, SpecEntry
from dagbok.projections.task_graph.shared import shared

MAX_KEY_CHARS = 256
MAX_NUMBER = 2**53
"""Counts and milliseconds up to here are exact wherever the log is read: in JSON of any language, and in the tables."""
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
        contract=_payload(spec, "contract", spec.contract),
        inputs=_payload(spec, "inputs", spec.inputs),
        metadata=_payload(spec, "metadata", spec.metadata),
    )
    return SpecEntry(canonical, sha256_hex(msgspec.json.encode(canonical)), created_by)


def check_verifiers(pinned: Pinned, specs: Iterable[Spec]) -> None:
    """Every verifier a spec names is one the run is bound to, for what it is to judge."""
    for spec in specs:
        own = pinned.verifiers.get(spec.verifier)
        if own is None or "candidate" not in own.judges:
            raise Refused(
                Code.VERIFIER_UNAVAILABLE, f"task {spec.id}: the run is not bound to verifier {spec.verifier!r}"
            )
        if spec.proposal_verifier is not None:
            judge = pinned.verifiers.get(spec.proposal_verifier)
            if judge is None or "decomposition" not in judge.judges:
                raise Refused(
                    Code.VERIFIER_UNAVAILABLE,
                    f"task {spec.id}: the run is not bound to a verifier {spec.proposal_verifier!r} of decompositions",
                )


def check_acyclic(edges: Mapping[str, Iterable[str]]) -> None:
    """Refuse a circle among tasks (id → the ids it waits for; ids outside are leaves). Iterative, O(edges)."""
    waiting = {task: sum(dep in edges for dep in deps) for task, deps in edges.items()}
    dependents: dict[str, list[str]] = {}
    for task, deps in edges.items():
        for dep in deps:
            if dep in edges:
                dependents.setdefault(dep, []).append(task)
    done = [task for task, count in waiting.items() if not count]
    for task in done:
        for dependent in dependents.get(task, ()):
            waiting[dependent] -= 1
            if not waiting[dependent]:
                done.append(dependent)
    if len(done) < len(edges):
        circle = sorted(task for task, count in waiting.items() if count)[:10]
        raise Refused(Code.CYCLE, f"tasks wait for each other in a circle: {', '.join(circle)}")


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
    return None


def _is_key(text: str) -> bool:
    return len(text) <= MAX_KEY_CHARS and not text.isspace() and text != ""


def _is_count(number: int | None) -> bool:
    return number is None or 0 < number <= MAX_NUMBER


def _payload(spec: Spec, name: str, text: msgspec.Raw) -> msgspec.Raw:
    if text is NULL:
        return NULL
    return canonical_payload(f"task {spec.id}, {name}", text, Code.INVALID_SPEC)
