"""Whatever a function does, its attempt ends, others go on, and what happened can be read."""

from __future__ import annotations

import asyncio
import gc
import math
import os
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

from dagbok import Candidate, Outcome, TaskContext, Verifier, verifier, worker
from dagbok.events.run.events import AttemptFailed, AttemptUnserved, VerdictRecorded
from dagbok.events.run.values import MAX_MESSAGE_CHARS
from dagbok.events.specs import Artifact
from tests.support.hosts import TIMEOUT_S, events_of, hosted, spec, until


class Unprintable(Exception):
    """An exception that cannot even say what it is."""

    def __str__(self) -> str:
        raise ValueError("no")


def _stop_iteration() -> None:
    next(iter(()))


def _no_unicode() -> None:
    raise FileNotFoundError(2, "no such file", os.fsdecode(b"caf\xe9"))


def _unprintable() -> None:
    raise Unprintable


def _enormous() -> None:
    raise ValueError("x" * 10_000_000)


def _exit() -> None:
    sys.exit("enough")


def _cancelled() -> None:
    raise asyncio.CancelledError("something inside")


def _deep() -> None:
    _deep()


RAISES = [_stop_iteration, _no_unicode, _unprintable, _enormous, _exit, _cancelled, _deep]
KINDS = ["async", "sync"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("raises", RAISES, ids=lambda raises: raises.__name__.strip("_"))
async def test_an_attempt_whose_function_raises_fails_and_the_next_one_gets_the_message(
    raises: Callable[[], None], kind: str, tmp_path: Path
) -> None:
    told: list[object] = []

    def act(task: TaskContext) -> Outcome:
        if task.attempt == 1:
            raises()
        told.append(task.diagnostics)
        return Outcome.candidate("done")

    @worker("odd", concurrency=1)
    async def odd(task: TaskContext) -> Outcome:
        return act(task)

    made = odd if kind == "async" else worker("odd", concurrency=1)(act)
    async with hosted(tmp_path, made) as dagbok:
        result = await dagbok.run(spec("odd"))
        assert result.succeeded
        (failed,) = await events_of(dagbok, AttemptFailed)
        assert isinstance(failed, AttemptFailed)
        assert told == [failed.failure.message]
        assert failed.failure.traceback.strip()
        assert len(failed.failure.message) < MAX_MESSAGE_CHARS + 100
        # Its place is free again.
        assert (await dagbok.run([spec("odd"), spec("odd")])).succeeded


async def test_a_failure_keeps_type_message_and_the_last_frames(tmp_path: Path) -> None:
    def nested(depth: int) -> None:
        if not depth:
            raise LookupError("no such page")
        nested(depth - 1)

    @worker("fails", pure=True)
    async def fails(task: TaskContext) -> Outcome:
        nested(100)
        return Outcome.candidate("never")

    async with hosted(tmp_path, fails) as dagbok:
        result = await dagbok.run(spec("fails", max_attempts=1))
        assert list(result.failed.values()) == ["worker_failed"]
        (failed,) = await events_of(dagbok, AttemptFailed)
        assert isinstance(failed, AttemptFailed)
        failure = failed.failure
        assert (failure.type, failure.message) == ("LookupError", "no such page")
        assert failure.traceback.count("in nested") <= 12
        assert failure.traceback.rstrip().endswith("LookupError: no such page")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_traceback_has_the_frames_of_the_user_alone(kind: str, tmp_path: Path) -> None:
    def act(task: TaskContext) -> Outcome:
        try:
            task.dependencies["nobody"]
        except KeyError as error:
            raise LookupError("no such page") from error
        return Outcome.candidate("never")

    @worker("fails")
    async def fails(task: TaskContext) -> Outcome:
        return act(task)

    made = fails if kind == "async" else worker("fails")(act)
    async with hosted(tmp_path, made) as dagbok:
        await dagbok.run(spec("fails", max_attempts=1))
        (failed,) = await events_of(dagbok, AttemptFailed)
        assert isinstance(failed, AttemptFailed)
        files = {line.split('"')[1] for line in failed.failure.traceback.splitlines() if line.startswith("  File ")}
        assert files == {__file__}
        assert failed.failure.traceback.startswith("Traceback (most recent call last):")
        assert "KeyError: " in failed.failure.traceback


async def test_what_dagbok_says_of_an_answer_has_no_frames_of_dagbok(tmp_path: Path) -> None:
    @worker("fails")
    async def fails(task: TaskContext) -> Outcome:
        return "text"  # type: ignore[return-value]

    async with hosted(tmp_path, fails) as dagbok:
        await dagbok.run(spec("fails", max_attempts=1))
        (failed,) = await events_of(dagbok, AttemptFailed)
        assert isinstance(failed, AttemptFailed)
        assert failed.failure.message == "a worker returns an Outcome, not str"
        assert failed.failure.traceback == ""


NOT_OUTCOMES: dict[str, Callable[[], object]] = {
    "text": lambda: "all good",
    "nothing": lambda: None,
    "a dict": lambda: {"result": 1},
    "NaN": lambda: Outcome.candidate({"x": math.nan}),
    "a set": lambda: Outcome.candidate({1, 2}),
    "an object": lambda: Outcome.candidate(object()),
    "no Unicode": lambda: Outcome.candidate({"name": os.fsdecode(b"caf\xe9")}),
    "a circle": lambda: Outcome.candidate(_circle()),
    "a name that is no Unicode": lambda: Outcome.candidate(1, artifacts={"\udcff": 1}),
    "a blank name": lambda: Outcome.candidate(1, artifacts={" ": 1}),
    "a media type that is no Unicode": lambda: Outcome.candidate(
        1, artifacts={"a": Artifact.model_construct(content=b"", media_type="\udcff")}
    ),
    "text that is no Unicode": lambda: Outcome.candidate("\udcff", media_type="text/plain"),
    "NaN as control value": lambda: Outcome.candidate(1, outputs=math.inf),
    "a block without a reason": lambda: Outcome.blocked("  "),
    "a block that is no Unicode": lambda: Outcome.model_construct(kind="blocked", reason="\udcff", artifacts={}),
    "the class": lambda: Outcome,
}


def _circle() -> list[object]:
    circle: list[object] = []
    circle.append(circle)
    return circle


@pytest.mark.parametrize("name", NOT_OUTCOMES)
async def test_what_is_no_outcome_fails_at_once_and_is_not_tried_again(name: str, tmp_path: Path) -> None:
    calls: list[int] = []

    @worker("odd", pure=True)
    async def odd(task: TaskContext) -> Outcome:
        calls.append(task.attempt)
        return NOT_OUTCOMES[name]()  # type: ignore[return-value]

    async with hosted(tmp_path, odd) as dagbok:
        result = await dagbok.run(spec("odd"))
        assert (result.status, list(result.failed.values()), calls) == ("failed", ["invalid_outcome"], [1])


async def test_control_values_above_their_limit_are_refused_once_and_for_all(tmp_path: Path) -> None:
    @worker("large", pure=True)
    async def large(task: TaskContext) -> Outcome:
        return Outcome.candidate(1, outputs="x" * 40_000)

    async with hosted(tmp_path, large) as dagbok:
        assert list((await dagbok.run(spec("large"))).failed.values()) == ["too_large"]


async def test_a_verifier_that_raises_once_is_asked_again_and_the_worker_is_not(tmp_path: Path) -> None:
    works: list[str] = []
    judged: list[str] = []

    @worker("count")
    async def count(task: TaskContext) -> Outcome:
        works.append(task.task_id)
        return Outcome.candidate(1)

    @verifier("crashes", version="1")
    def crashes(candidate: Candidate, task: TaskContext) -> bool:
        judged.append(task.task_id)
        if len(judged) == 1:
            raise RuntimeError("boom")
        return True

    async with hosted(tmp_path, count, crashes) as dagbok:
        assert (await dagbok.run(spec("count", verifier="crashes"))).succeeded
    assert (len(works), len(judged)) == (1, 2)


@pytest.mark.parametrize("answer", ["yes", None, 1, [True]])
async def test_an_answer_that_is_no_verdict_publishes_nothing(answer: object, tmp_path: Path) -> None:
    @worker("count")
    async def count(task: TaskContext) -> Outcome:
        return Outcome.candidate(1)

    @verifier("odd", version="1")
    async def odd(candidate: Candidate, task: TaskContext) -> bool:
        return answer  # type: ignore[return-value]

    async with hosted(tmp_path, count, odd) as dagbok:
        result = await dagbok.run(spec("count", verifier="odd"))
        assert result.status == "blocked"
        assert not await events_of(dagbok, VerdictRecorded)


async def test_a_verifier_over_its_time_is_told_and_counts_as_an_error_of_the_verifier(tmp_path: Path) -> None:
    told = threading.Event()

    @worker("count")
    async def count(task: TaskContext) -> Outcome:
        return Outcome.candidate(1)

    @verifier("slow", version="1", timeout_s=0.05)
    def slow(candidate: Candidate, task: TaskContext) -> bool:
        for _ in range(3_000):
            if task.cancelled:
                told.set()
                return True
            threading.Event().wait(0.01)
        return True

    async with hosted(tmp_path, count, slow) as dagbok:
        result = await dagbok.run(spec("count", verifier="slow"))
        assert (result.status, list(result.blocked.values())) == ("blocked", ["verifier_error"])
        failures = await events_of(dagbok, AttemptFailed)
        assert "longer than 0.05 s" in str(failures[0])
        assert await asyncio.to_thread(told.wait, TIMEOUT_S)


async def test_a_key_nobody_serves_is_shown_and_served_by_the_process_that_has_it(tmp_path: Path) -> None:
    async with hosted(tmp_path) as dagbok:
        run = await dagbok.start(spec("rare"), key="rare")
        await until(dagbok, lambda: bool(dagbok.unserved(run)))
        assert dagbok.unserved(run) == [("worker", "rare")]

    @worker("rare")
    async def rare(task: TaskContext) -> Outcome:
        return Outcome.candidate(task.attempt)

    async with hosted(tmp_path, rare) as dagbok:
        result = await dagbok.run(spec("rare"), key="rare")
        assert (result.run, result.json()) == (run, 1)


async def test_a_review_waits_for_the_version_of_its_verifier_that_the_run_is_bound_to(tmp_path: Path) -> None:
    judged: list[str] = []

    def judge(number: str) -> Verifier:
        @verifier("judge", version=number)
        async def judges(candidate: Candidate, task: TaskContext) -> bool:
            judged.append(number)
            return True

        return judges

    @worker("makes", pure=True)
    async def makes(task: TaskContext) -> Outcome:
        return Outcome.candidate(1)

    async with hosted(tmp_path, judge("1")) as dagbok:
        run = await dagbok.start(spec("makes", verifier="judge"))
    async with hosted(tmp_path, makes, judge("2")) as dagbok:
        await until(dagbok, lambda: dagbok.unserved(run) == [("verifier", "judge")])
        rejected = await events_of(dagbok, AttemptUnserved)
        serves = {name for event in rejected for name in event.serves}
        assert "judge (version 2)" in serves
    async with hosted(tmp_path, makes, judge("1")) as dagbok:
        assert (await dagbok.wait(run)).succeeded
    assert set(judged) == {"1"}


@pytest.mark.parametrize("kind", KINDS)
async def test_an_attempt_leaves_nothing_for_the_collector(tmp_path: Path, kind: str) -> None:
    """What it had, artifacts included, is freed when it is over, and not when the collector next comes by."""
    left: list[weakref.ref[TaskContext]] = []

    async def keeps(task: TaskContext) -> Outcome:
        await task.session.save({"turn": task.attempt})
        return looks(task)

    def looks(task: TaskContext) -> Outcome:
        left.append(weakref.ref(task))
        return Outcome.candidate("done")

    gc.disable()
    try:
        async with hosted(tmp_path, worker("w")(keeps if kind == "async" else looks)) as dagbok:
            assert (await dagbok.run(spec("w"))).succeeded
            assert [context() for context in left] == [None]
    finally:
        gc.enable()
