"""Cases of the first two lists of `docs/conformance.md` that no other test has, on a whole host."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from pydantic import ValidationError

from dagbok import Candidate, Code, Dagbok, Limits, Outcome, TaskContext, TaskLimits, TaskSpec, verifier, worker
from dagbok.agents.scheduler.handle import Decided
from dagbok.events.run import events as e
from dagbok.events.run import values
from dagbok.events.run.values import MAX_INLINE_BYTES
from dagbok.testing import act, candidate, decompose, given, pin, run_of, start, task
from tests.support.hosts import events_of, hosted, spec, until, yes


def test_nobody_brings_a_hash_for_his_contract() -> None:
    """4.4"""
    with pytest.raises(ValidationError, match="contract_hash"):
        spec("w", contract={"lines": 3}, contract_hash="0" * 64)


async def test_a_diamond_served_from_two_connections_runs_each_task_once(tmp_path: Path) -> None:
    """4.5"""
    calls: list[str] = []

    @worker("counts")
    async def counts(task: TaskContext) -> Outcome:
        calls.append(task.task_id)
        return Outcome.candidate(task.task_id)

    diamond = [
        spec("counts", id="top"),
        *(spec("counts", id=f"side-{number}", depends_on=["top"]) for number in range(20)),
        spec("counts", id="end", depends_on=[f"side-{number}" for number in range(20)]),
    ]
    async with (
        hosted(tmp_path, counts) as owner,
        Dagbok.embedded(tmp_path, yes, counts, own="never", projector="none"),
    ):
        assert (await owner.run(diamond)).succeeded
    assert sorted(calls) == sorted(each.id or "" for each in diamond)


def test_an_old_attempt_is_refused_after_a_restart() -> None:
    """4.7: the state as a fold of the events alone, as after a restart."""
    claimed = run_of(task("a", lease_ms=1_000)).starts("a")
    late = act.submit_outcome(claimed.state, "a", candidate("late"))
    lost = claimed.fires("lease", "a")
    restarted = given(*[step.event for step in lost.steps], now_ms=lost.now_ms).then_task("a", epoch=2, status="ready")
    restarted.when(late).then_refused(Code.STALE_ATTEMPT)


async def test_what_fails_its_verifier_is_not_published(tmp_path: Path) -> None:
    """4.13"""

    @worker("tries")
    async def tries(task: TaskContext) -> Outcome:
        return Outcome.candidate({"attempt": task.attempt})

    @verifier("no", version="1")
    async def no(candidate: Candidate, task: TaskContext) -> bool:
        return False

    async with hosted(tmp_path, tries, no) as dagbok:
        result = await dagbok.run(spec("tries", verifier="no", id="a", max_attempts=1))
        assert result.status == "failed"
        assert not result.roots
        assert await events_of(dagbok, e.CandidateSubmitted)
        assert not await events_of(dagbok, e.TaskVerified)


async def test_a_replacement_is_found_under_either_name(tmp_path: Path) -> None:
    """4.17"""

    @worker("fails")
    async def fails(task: TaskContext) -> Outcome:
        raise ValueError("never works")

    @worker("works")
    async def works(task: TaskContext) -> Outcome:
        return Outcome.candidate("new")

    @worker("reads")
    async def reads(task: TaskContext) -> Outcome:
        assert set(task.dependencies) == {"new"}
        return Outcome.candidate([task.dependencies["old"].json(), task.dependencies["new"].json()])

    async with hosted(tmp_path, fails, works, reads) as dagbok:
        specs = [spec("fails", id="old", max_attempts=1), spec("reads", id="end", depends_on=["old"])]
        run = await dagbok.start(specs)
        assert (await dagbok.wait(run)).status == "failed"
        await dagbok.supersede(run, "old", spec("works", id="new"))
        assert (await dagbok.wait(run)).json() == ["new", "new"]


async def test_more_than_the_worker_may_be_handed_blocks_the_task_and_nothing_is_cut(tmp_path: Path) -> None:
    """4.19"""
    handed: list[object] = []

    @worker("makes")
    async def makes(task: TaskContext) -> Outcome:
        return Outcome.candidate("x" * 1_000)

    @worker("reads")
    async def reads(task: TaskContext) -> Outcome:
        handed.append((task.contract, task.dependencies["a"].json()))
        return Outcome.candidate(1)

    contract = {"rule": "y" * 500}
    end = spec("reads", id="end", depends_on=["a"], contract=contract, limits=TaskLimits(context_bytes=1_500))
    async with hosted(tmp_path, makes, reads) as dagbok:
        run = await dagbok.start([spec("makes", id="a"), end])
        result = await dagbok.wait(run)
        assert (result.status, dict(result.blocked)) == ("blocked", {"end": Code.CONTEXT_OVERFLOW})
        roomy = end.model_copy(update={"id": "roomy", "limits": TaskLimits(context_bytes=1_600)})
        await dagbok.supersede(run, "end", roomy)
        assert (await dagbok.wait(run)).succeeded
    assert handed == [(contract, "x" * 1_000)]


async def test_a_failed_run_is_repaired_and_succeeds(tmp_path: Path) -> None:
    """6.6"""
    broken = True

    @worker("mended")
    async def mended(task: TaskContext) -> Outcome:
        if broken:
            raise ValueError("not yet")
        return Outcome.candidate(task.problem.note if task.problem is not None else "")

    async with hosted(tmp_path, mended) as dagbok:
        run = await dagbok.start([spec("mended", id="a", max_attempts=1), spec("mended", depends_on=["a"])])
        assert (await dagbok.wait(run)).status == "failed"
        broken = False
        await dagbok.retry(run, "a", note="mended now")
        assert (await dagbok.wait(run)).succeeded
        assert [event.note for event in await events_of(dagbok, e.TaskRetried)] == [
            "mended now"
        ]


async def test_cancel_in_flight_returns_a_result_and_nothing_comes_after_it(tmp_path: Path) -> None:
    """6.7"""
    begun, stopped = asyncio.Event(), asyncio.Event()

    @worker("stubborn")
    async def stubborn(task: TaskContext) -> Outcome:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.set()
        return Outcome.candidate("too late")

    async with hosted(tmp_path, stubborn) as dagbok:
        run = await dagbok.start([spec("stubborn"), spec("stubborn")])
        waiting = asyncio.create_task(dagbok.wait(run))
        await begun.wait()
        await dagbok.cancel(run)
        assert (await waiting).status == "cancelled"
        await stopped.wait()
        closed = await events_of(dagbok, e.AttemptClosed)
        assert [event.cause for event in closed] == ["run_cancelled"] * 2
        assert not await events_of(dagbok, e.CandidateSubmitted)


def test_a_worker_cannot_give_its_children_a_laxer_verifier() -> None:
    """6.16: by assurance, or by the list of the task above."""
    strict, lax = pin(assurance="formal"), pin()
    run = given().when(start(task("root"), verifiers={"check": strict, "lax": lax}))
    child = decompose(task("child", verifier="lax"))
    refused = run.starts("root").submits("root", child)
    assert [event.code for event in refused.events if isinstance(event, e.TaskBlocked)] == [Code.WEAKER_VERIFIER]
    listed = given().when(start(task("root", child_verifiers=("check",)), verifiers={"check": strict, "other": pin()}))
    refused = listed.starts("root").submits("root", decompose(task("child", verifier="other")))
    assert [event.code for event in refused.events if isinstance(event, e.TaskBlocked)] == [Code.WEAKER_VERIFIER]


async def test_a_run_is_still_there_after_a_restart(tmp_path: Path) -> None:
    """6.19"""

    @worker("once")
    async def once(task: TaskContext) -> Outcome:
        return Outcome.candidate("kept")

    async with hosted(tmp_path, once) as dagbok:
        run = await dagbok.start(spec("once"))
        assert (await dagbok.wait(run)).succeeded
    async with hosted(tmp_path) as dagbok:
        assert (await dagbok.result(run)).json() == "kept"


def test_the_seventeenth_pending_verdict_holds_back_new_work() -> None:
    """6.21"""
    tasks = [task(f"t{number}") for number in range(20)]
    run = given().when(start(*tasks, limits=values.Limits(max_pending_verifications=16, max_open=17)))
    for number in range(16):
        run = run.submits(f"t{number}", candidate(number))
    # One was open when the sixteenth verdict became pending; beyond it nothing opens before a verdict is in.
    assert [id for id in run.state.active if run.task(id).status == "ready"] == ["t16"]
    run = run.submits("t16", candidate(16))
    assert not any(run.task(id).status == "ready" for id in run.state.active)
    run = run.judges("t0", "pass").judges("t1", "pass")
    assert [id for id in run.state.active if run.task(id).status == "ready"] == ["t17", "t18"]


async def test_an_artifact_above_the_limit_of_the_run_blocks_its_task(tmp_path: Path) -> None:
    """6.21: the same whether the bytes lie in the log or in the store."""

    @worker("large")
    async def large(task: TaskContext) -> Outcome:
        return Outcome.candidate(b"x" * task.inputs)

    async with hosted(tmp_path, large) as dagbok:
        for size_bytes in (2_000, MAX_INLINE_BYTES * 2):
            id = f"of-{size_bytes}"
            run = await dagbok.start(spec("large", id=id, inputs=size_bytes), limits=Limits(max_artifact_bytes=1_999))
            result = await dagbok.wait(run)
            assert (result.status, dict(result.blocked)) == ("blocked", {id: Code.BUDGET_EXHAUSTED})
            await dagbok.set_limits(run, Limits(max_artifact_bytes=size_bytes))
            await dagbok.resolve(run, id)
            assert (await dagbok.wait(run)).succeeded


async def test_a_worker_reads_what_it_depends_on_and_nothing_else(tmp_path: Path) -> None:
    """6.25"""

    @worker("makes")
    async def makes(task: TaskContext) -> Outcome:
        return Outcome.candidate(task.task_id)

    @worker("reads")
    async def reads(task: TaskContext) -> Outcome:
        with pytest.raises(KeyError):
            task.dependencies["stranger"]
        return Outcome.candidate({id: artifacts.json() for id, artifacts in task.dependencies.items()})

    async with hosted(tmp_path, makes, reads) as dagbok:
        specs = [spec("makes", id="mine"), spec("makes", id="stranger"), spec("reads", id="end", depends_on=["mine"])]
        result = await dagbok.run(specs)
        assert result.roots["end"].json() == {"mine": "mine"}


async def test_leases_hold_while_ten_thousand_children_enter(tmp_path: Path) -> None:
    """6.28"""
    beating, split = asyncio.Event(), asyncio.Event()

    @worker("heart")
    async def heart(task: TaskContext) -> Outcome:
        beating.set()
        await split.wait()
        return Outcome.candidate("alive")

    @worker("splits", pure=True)
    async def splits(task: TaskContext) -> Outcome:
        return Outcome.decompose([TaskSpec(goal="rest", worker="rests", verifier="yes") for _ in range(10_000)])

    async with hosted(tmp_path, heart, splits) as dagbok:
        hearts = await dagbok.start([spec("heart", lease_s=2.0) for _ in range(5)])
        await beating.wait()
        run = await dagbok.start(spec("splits"), limits=Limits(max_tasks=10_001))
        await until(dagbok, lambda: sum(dagbok.progress(run).values()) == 10_001)
        renewed: list[e.Event] = []
        unwatch = dagbok.host.outputs.watch(lambda _, batch: renewed.extend(_renewals(batch)))
        await until(dagbok, lambda: bool(renewed))
        unwatch()
        split.set()
        assert (await dagbok.wait(hearts)).succeeded
        assert not await events_of(dagbok, e.AttemptLost)
        await dagbok.cancel(run)


def _renewals(batch: Sequence[Decided]) -> list[e.Event]:
    return [event for decided in batch for event in decided.events if isinstance(event, e.LeasesRenewed)]
