"""Whatever a program hands to a public function, it is told so by an error of dagbok's tree (or of pydantic, where a
value of its own is written), and never by one of Python's from somewhere inside."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from dagbok import (
    Artifact,
    Dagbok,
    DagbokError,
    Limits,
    Outcome,
    Registry,
    Retry,
    TaskLimits,
    TaskSpec,
    Usage,
    Verdict,
    When,
    verifier,
    worker,
)
from dagbok.testing import NO_FAULTS, candidate_of, context, outcome_of, simulate, verdict_of
from tests.support.hosts import spec, yes
from tests.support.scale import scale

Offered = Callable[..., object]
CALLS = scale(25, 400)
SMALL = st.text(max_size=3) | st.sampled_from(["", "../x", "a b", "\0", "\ud800", "٣.r", "1.r", "run", "t", "x" * 300])
NUMBERS = st.integers() | st.sampled_from([-1, 0, 1, 2**31, 2**53, 2**63, 2**64, 10**400])
SCALARS = st.none() | st.booleans() | NUMBERS | st.floats() | SMALL | st.binary(max_size=3)
GARBAGE = st.recursive(
    SCALARS, lambda of: st.lists(of, max_size=2) | st.dictionaries(SMALL, of, max_size=2), max_leaves=4
)


@worker("echo")
def echo(task: object) -> Outcome:
    return Outcome.candidate(None)


def arguments_of(function: Offered) -> Iterable[inspect.Parameter]:
    return [each for name, each in inspect.signature(function).parameters.items() if name not in ("self", "cls")]


@st.composite
def calls(draw: st.DrawFn, function: Offered, right: dict[str, object]) -> tuple[list[object], dict[str, Any]]:
    """Arguments for a function of which at least one is garbage; the others are right, or left out."""
    parameters = arguments_of(function)
    wrong = draw(st.sets(st.sampled_from([each.name for each in parameters]), min_size=1, max_size=2))
    positional: list[object] = []
    named: dict[str, Any] = {}
    for each in parameters:
        if each.kind is each.VAR_KEYWORD:
            found = draw(st.dictionaries(st.sampled_from(sorted(Limits.model_fields)), GARBAGE, min_size=1, max_size=2))
            named.update(found if each.name in wrong else {})
        elif each.kind is each.VAR_POSITIONAL:
            positional += draw(st.lists(GARBAGE, min_size=1, max_size=2)) if each.name in wrong else []
        elif each.name in wrong:
            value: object = draw(GARBAGE)
            if each.kind is each.KEYWORD_ONLY:
                named[each.name] = value
            else:
                positional.append(value)
        elif each.default is each.empty or each.kind is not each.KEYWORD_ONLY:
            value = right.get(each.name, each.default)
            if each.kind is each.KEYWORD_ONLY:
                named[each.name] = value
            else:
                positional.append(value)
    return positional, named


async def told(answer: object) -> None:
    """Whatever becomes of a call, it is an answer or an error that is drawn in the tree."""
    if isinstance(answer, AsyncIterator):
        answer = anext(answer, None)
    if isinstance(answer, Awaitable):
        # What waits for a run that goes on is well.
        with suppress(TimeoutError):
            async with asyncio.timeout(0.05):
                await answer


STEERED = (
    *("start", "run", "wait", "result", "events", "list_runs", "progress", "status", "unserved", "pause", "resume"),
    *("session", "fork"),
    *("cancel", "cancel_task", "resolve", "retry", "supersede", "amend", "set_limits", "pins"),
)


def test_every_method_of_a_client_is_among_them() -> None:
    public = {name for name in dir(Dagbok) if not name.startswith("_")}
    assert public == {*STEERED, "embedded", "connect", "host", "kafka_host"}


@pytest.mark.parametrize("name", STEERED)
def test_a_client_tells_what_it_cannot_use(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    right = {"run": "", "task": spec("echo", id="t"), "replacement": spec("echo"), "keys": "yes"}

    @settings(max_examples=CALLS, deadline=None)
    @given(calls(getattr(Dagbok, name), right))
    def holds(arguments: tuple[list[object], dict[str, Any]]) -> None:
        asyncio.run(offered(*arguments))

    async def offered(positional: list[object], named: dict[str, Any]) -> None:
        folder = tmp_path_factory.mktemp("data")
        async with Dagbok.embedded(folder, yes, projector="none", serve=False) as dagbok:
            run = await dagbok.start(spec("echo", id="t"))
            placed = [run if value == "" else value for value in positional]
            if name not in ("start", "run"):
                placed = ["t" if isinstance(value, TaskSpec) and at == 1 else value for at, value in enumerate(placed)]
            with suppress(DagbokError, ValidationError):
                await told(getattr(dagbok, name)(*placed, **named))

    holds()


WRITTEN: tuple[tuple[Offered, dict[str, object]], ...] = (
    (Outcome.candidate, {"content": 1}),
    (Outcome.decompose, {"tasks": []}),
    (Outcome.blocked, {"reason": "r"}),
    (Verdict.passed, {}),
    (Verdict.failed, {"diagnostics": "d"}),
    (Verdict.inconclusive, {"diagnostics": "d"}),
    (Verdict.error, {"diagnostics": "d"}),
    (Retry, {"message": "m", "after_s": 1}),
    (Artifact, {"content": 1}),
    (Limits, {}),
    (TaskLimits, {}),
    (TaskSpec, {"goal": "g", "worker": "w", "verifier": "v"}),
    (Usage, {}),
    (worker, {"key": "k"}),
    (verifier, {"key": "k", "version": "1"}),
    (Registry().add, {}),
    (Registry().add_from, {}),
    (context, {}),
    (context().use, {}),
    (candidate_of, {"outcome": Outcome.candidate(1)}),
    (outcome_of, {"worker": echo, "task": context()}),
    (verdict_of, {"verifier": yes, "candidate": candidate_of(Outcome.candidate(1)), "task": context()}),
)


@pytest.mark.parametrize(("function", "right"), WRITTEN, ids=lambda each: getattr(each, "__qualname__", ""))
def test_what_people_write_is_refused_by_name(function: Offered, right: dict[str, object]) -> None:
    @settings(max_examples=4 * CALLS, deadline=None)
    @given(calls(function, right))
    def holds(arguments: tuple[list[object], dict[str, Any]]) -> None:
        positional, named = arguments
        with suppress(DagbokError, ValidationError):
            made = function(*positional, **named)
            if function in (worker, verifier) and callable(made):
                made(echo.function)

    holds()


@settings(max_examples=4 * CALLS, deadline=None)
@given(SMALL, SMALL, st.dictionaries(st.sampled_from(["equals", "one_of", "below", "at_least", "x"]), GARBAGE))
def test_so_is_a_condition(task: str, output: str, comparison: dict[str, Any]) -> None:
    with suppress(DagbokError, ValidationError):
        assert When(task, output, **comparison).condition.task == task


@settings(max_examples=CALLS, deadline=None)
@given(calls(simulate, {"tasks": spec("echo"), "definitions": (), "seeds": [1], "faults": NO_FAULTS}))
def test_so_is_what_is_to_be_simulated(arguments: tuple[list[object], dict[str, Any]]) -> None:
    positional, named = arguments
    given_seeds = {"seeds": [1], "faults": NO_FAULTS} | named
    with suppress(DagbokError, ValidationError):
        simulate(positional[0], echo, yes, *positional[1:], **given_seeds)  # type: ignore[arg-type]


@settings(max_examples=CALLS, deadline=None)
@given(calls(Dagbok.embedded, {}))
def test_so_are_the_arguments_of_a_client(arguments: tuple[list[object], dict[str, Any]]) -> None:
    positional, named = arguments

    async def entered() -> None:
        with suppress(DagbokError):
            async with asyncio.timeout(10), Dagbok.embedded(*positional, **named):  # type: ignore[arg-type]
                pass

    if positional and not isinstance(positional[0], str):  # a text names a folder, and makes it
        asyncio.run(entered())
