"""What a user declares: workers and verifiers, by key. Declaring registers nothing: a program hands them to a
`Registry`."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import get_args

from dagbok.agents.workers.context import Candidate, TaskContext
from dagbok.events import arguments
from dagbok.events.canonical import Json, digest
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput
from dagbok.events.run.values import Assurance, Judged, VerifierPin
from dagbok.events.specs import Outcome, Verdict

WorkerFunction = Callable[[TaskContext], Outcome | Awaitable[Outcome]]
VerifierFunction = Callable[[Candidate, TaskContext], bool | Verdict | Awaitable[bool | Verdict]]

ASYNC_CONCURRENCY = 256
SYNC_CONCURRENCY = 8
PURE_GRACE_S = 5.0
"""How long a pure worker or a verifier may run before it has to claim its attempt (architecture 3.4)."""


@dataclass(frozen=True)
class Worker:
    """A function that does tasks. `pure`: without side effects, so that doing it twice costs only time.
    `concurrency`: how many run at once in one process; a sync function has a thread pool of that size."""

    key: str
    function: WorkerFunction
    pure: bool
    concurrency: int

    @cached_property
    def is_async(self) -> bool:
        """Runs on the event loop; else in a thread."""
        return inspect.iscoroutinefunction(self.function)

    def __call__(self, task: TaskContext) -> Outcome | Awaitable[Outcome]:
        """Call the function itself, in a test say."""
        return self.function(task)


@dataclass(frozen=True)
class Verifier:
    """A function that judges. A run is bound to its version and to the digest of `config`; `assurance` says of which
    kind its verdicts are; `judges` whether it judges candidates, decompositions or both."""

    key: str
    function: VerifierFunction
    version: str
    concurrency: int
    assurance: Assurance = "executable_checks"
    judges: tuple[Judged, ...] = ("candidate",)
    config: Json = None
    timeout_s: float | None = None
    digest: str = field(init=False, default="")

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", digest(self.config))

    @cached_property
    def is_async(self) -> bool:
        """Runs on the event loop; else in a thread."""
        return inspect.iscoroutinefunction(self.function)

    @cached_property
    def pin(self) -> VerifierPin:
        """What a run is bound to."""
        return VerifierPin(self.version, self.digest, self.assurance, self.judges)

    def __call__(self, candidate: Candidate, task: TaskContext) -> bool | Verdict | Awaitable[bool | Verdict]:
        """Call the function itself, in a test say."""
        return self.function(candidate, task)


def worker(key: str, *, pure: bool = False, concurrency: int | None = None) -> Callable[[WorkerFunction], Worker]:
    """Declare a function, async or sync, as the worker of `key`.

    It gets a `TaskContext` and returns an `Outcome`. An exception spends one attempt, and its message reaches the next;
    `Terminal` fails the task at once. Raises `InvalidInput` (`usage`, `invalid_spec`) for a key that is no text or
    blank, and a `concurrency` that is no whole number from 1.
    """

    def declare(function: WorkerFunction) -> Worker:
        return Worker(key, function, pure, _concurrency(function, key, concurrency))

    return declare


def verifier(
    key: str,
    *,
    version: str,
    assurance: Assurance = "executable_checks",
    judges: tuple[Judged, ...] | Judged = ("candidate",),
    config: Json = None,
    concurrency: int | None = None,
    timeout_s: float | None = None,
) -> Callable[[VerifierFunction], Verifier]:
    """Declare a function, async or sync, as the verifier of `key`. Change `version` whenever it may judge differently.

    It gets the candidate and the task and returns true, false or a `Verdict`. An exception asks the verifier again, not
    the worker. Raises `InvalidInput` (`usage`) for arguments that are not of their types, and as `worker` does.
    """

    def declare(function: VerifierFunction) -> Verifier:
        limit = _concurrency(function, key, concurrency)
        arguments.text("version", version)
        arguments.one_of("assurance", assurance, get_args(Assurance))
        if timeout_s is not None:
            arguments.number("timeout_s", timeout_s, advice="name a number of seconds")
        return Verifier(key, function, version, limit, assurance, _kinds(judges), config, timeout_s)

    return declare


def _kinds(judges: tuple[Judged, ...] | Judged) -> tuple[Judged, ...]:
    kinds = (judges,) if isinstance(judges, str) else tuple(arguments.typed("judges", judges, (tuple, list)))
    for kind in kinds:
        arguments.one_of("judges", kind, get_args(Judged))
    return kinds


def _concurrency(function: object, key: str, wanted: int | None) -> int:
    if not arguments.text("key", key).strip():
        raise InvalidInput("a key is not blank", code=Code.INVALID_SPEC)
    if not callable(function):
        raise arguments.wrong(f"the function of {key}", function, "declare a function")
    if wanted is not None and arguments.whole("concurrency", wanted) < 1:
        raise InvalidInput(f"{key}: concurrency must be at least 1", code=Code.INVALID_SPEC)
    return wanted or (ASYNC_CONCURRENCY if inspect.iscoroutinefunction(function) else SYNC_CONCURRENCY)


class Registry:
    """The workers and verifiers of one program. Two different ones under one key are an error."""

    def __init__(self) -> None:
        self.workers: dict[str, Worker] = {}
        self.verifiers: dict[str, Verifier] = {}

    def add(self, *definitions: Worker | Verifier) -> None:
        """Register; the same definition again changes nothing. Raises `InvalidInput` (`usage`) for what is neither."""
        for definition in definitions:
            arguments.typed("a definition", definition, (Worker, Verifier))
            kind: dict[str, Worker] | dict[str, Verifier] = (
                self.workers if isinstance(definition, Worker) else self.verifiers
            )
            known = kind.get(definition.key)
            if known is not None and known is not definition:
                name = type(definition).__name__.lower()
                raise InvalidInput(f"two {name}s have the key {definition.key!r}", code=Code.INVALID_SPEC)
            if isinstance(definition, Worker):
                self.workers[definition.key] = definition
            else:
                self.verifiers[definition.key] = definition

    def add_from(self, namespace: object) -> None:
        """Register every worker and verifier that a module (or any object) has as an attribute."""
        if not hasattr(namespace, "__dict__"):
            raise arguments.wrong("a module", namespace, "give the module itself")
        found = [value for value in vars(namespace).values() if isinstance(value, Worker | Verifier)]
        self.add(*found)

    def pins(self) -> dict[str, VerifierPin]:
        """All verifiers, as a run is bound to them."""
        return {key: definition.pin for key, definition in self.verifiers.items()}
