"""What a service around layers must do, as runs of dagbok do it."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from dagbok import Dagbok, Outcome, RunResult, TaskSpec
from dagbok.agents.layers import Compositor, LayerConfig, LayerNode, LayerProvider, NoLayerDeps, PlainLayer, ToolsLayer
from dagbok.agents.layers.durable import LayeredAttempt, LayeredWorker, Loop
from dagbok.agents.layers.pydantic_ai import PYDANTIC_AI_TRANSFORMERS, PydanticAIHistoryLayer, keep_steps
from dagbok.events.run.events import AttemptFailed, AttemptReleased, SessionResumed
from tests.layers.parts import Count
from tests.support.hosts import events_of, hosted

ENDS = {"CandidateSubmitted", "DecompositionAccepted", "TaskBlocked", "AttemptFailed"}


class Counting(PlainLayer[NoLayerDeps, LayerConfig, Count]):
    """Counts how often it was created."""

    config_type = LayerConfig

    async def on_context_create(self) -> None:
        self.runtime_state.count += 1


def layered(loop: Loop, *names: str) -> LayeredWorker:
    return LayeredWorker(Compositor([LayerNode(name, Counting) for name in names or ("one", "two")]), loop)


def one(**more: Any) -> TaskSpec:
    given = {"id": "t", "goal": "do it", "worker": "works", "verifier": "yes", "max_attempts": 1, **more}
    return TaskSpec.model_validate(given)


async def ran(folder: Path, loop: Loop, **more: Any) -> tuple[RunResult, list[str], list[AttemptFailed]]:
    """A run of one task: its result, the types of its events, and how attempts failed."""
    async with hosted(folder, layered(loop).worker("works")) as dagbok:
        result = await dagbok.run(one(**more))
        told = [event.type async for event in dagbok.events(result.run)]
        return result, told, await events_of(dagbok, AttemptFailed)


async def test_null_is_an_output_like_any_other(tmp_path: Path) -> None:
    async def loop(attempt: LayeredAttempt) -> Outcome:
        return Outcome.candidate(None)

    result, _, _ = await ran(tmp_path, loop)
    assert (result.status, result.json(), result.roots["t"].data()) == ("succeeded", None, b"null")


async def gives(attempt: LayeredAttempt) -> Outcome:
    return Outcome.candidate(1)


async def splits(attempt: LayeredAttempt) -> Outcome:
    if attempt.task.phase == "integrate":
        return Outcome.candidate(2)
    return Outcome.decompose([TaskSpec(goal="part", worker="works", verifier="yes", inputs="part")])


async def stops(attempt: LayeredAttempt) -> Outcome:
    return Outcome.blocked("no money")


async def breaks(attempt: LayeredAttempt) -> Outcome:
    raise ValueError("broke")


@pytest.mark.parametrize(
    ("loop", "end"), [(gives, "CandidateSubmitted"), (stops, "TaskBlocked"), (breaks, "AttemptFailed")]
)
async def test_an_attempt_has_exactly_one_result(loop: Loop, end: str, tmp_path: Path) -> None:
    _, told, _ = await ran(tmp_path, loop)
    assert [each for each in told if each in ENDS] == [end]


async def test_each_attempt_of_a_task_that_is_split_has_exactly_one_result(tmp_path: Path) -> None:
    async def loop(attempt: LayeredAttempt) -> Outcome:
        return await (gives(attempt) if attempt.task.inputs == "part" else splits(attempt))

    result, told, _ = await ran(tmp_path, loop)
    assert result.json() == 2
    assert Counter(each for each in told if each in ENDS) == {"DecompositionAccepted": 1, "CandidateSubmitted": 2}


def look() -> str:
    """A tool."""
    return "seen"


async def test_two_tools_of_one_name_fail_the_run_and_are_named(tmp_path: Path) -> None:
    made = LayerProvider.from_factory(layer_type=ToolsLayer, create=lambda _: ToolsLayer([look]))

    async def loop(attempt: LayeredAttempt) -> Outcome:
        return Outcome.candidate(len(attempt.run.tools))

    worker = LayeredWorker(Compositor([LayerNode("one", made), LayerNode("two", made)]), loop).worker("works")
    async with hosted(tmp_path, worker) as dagbok:
        result = await dagbok.run(one())
        (failed,) = await events_of(dagbok, AttemptFailed)
    assert result.status == "failed"
    assert failed.failure.message == "Tools cannot be named so: 'look' is given 2 times"


async def test_a_turn_appends_its_own_messages_and_no_prompts_of_the_system(tmp_path: Path) -> None:
    seen: list[int] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        assert info.instructions == "secret rules"
        seen.append(len(messages))
        return ModelResponse(parts=[TextPart(f"answer {len(messages)}")])

    async def loop(attempt: LayeredAttempt) -> Outcome:
        history = attempt.run.get_layer("history", PydanticAIHistoryLayer)
        agent = Agent(FunctionModel(model), instructions="secret rules")
        for number in range(3):
            async with agent.iter(f"question {number}", message_history=history.for_next_run()) as steps:
                await keep_steps(steps, history)
            await attempt.put_down()
        return Outcome.candidate(0)

    nodes = [LayerNode("history", PydanticAIHistoryLayer)]
    worker = LayeredWorker(Compositor(nodes, **PYDANTIC_AI_TRANSFORMERS), loop).worker("works")
    async with hosted(tmp_path, worker) as dagbok:
        run = (await dagbok.run(one())).run
        turns = [(await dagbok.session(run, "t", turn=turn)).value for turn in (1, 2, 3)]
    kept = [turn["layers"]["history"]["state"]["messages"] for turn in turns]
    assert [len(messages) for messages in kept] == [2, 4, 6]
    assert kept[2][:4] == kept[1]
    assert "secret rules" not in str(turns)
    assert seen == [1, 3, 5]


async def test_what_shall_become_of_a_layer_is_in_the_session_and_the_next_attempt_heeds_it(tmp_path: Path) -> None:
    counts: list[tuple[int, int]] = []

    async def loop(attempt: LayeredAttempt) -> Outcome:
        one, two = (attempt.run.get_layer(name, Counting).runtime_state for name in ("one", "two"))
        counts.append((one.count, two.count))
        one.count, two.count = one.count + 10, two.count + 10
        attempt.run.delete_layer_on_exit("two")
        if len(counts) == 1:
            raise ValueError("once more")
        return Outcome.candidate(0)

    async with hosted(tmp_path, layered(loop).worker("works")) as dagbok:
        run = (await dagbok.run(one(max_attempts=2))).run
        layers = (await dagbok.session(run, "t")).value["layers"]
    assert counts == [(1, 1), (11, 1)], "what was suspended goes on, what was deleted is created anew"
    assert {name: layer["lifecycle"] for name, layer in layers.items()} == {"one": "suspended", "two": "closed"}


async def test_what_shall_become_of_a_layer_that_is_not_there_fails_the_attempt(tmp_path: Path) -> None:
    async def loop(attempt: LayeredAttempt) -> Outcome:
        attempt.run.delete_layer_on_exit("three")
        return Outcome.candidate(0)

    result, _, (failed,) = await ran(tmp_path, loop)
    assert result.status == "failed"
    assert "Layer 'three' is not defined" in failed.failure.message


async def test_a_shutdown_hands_the_attempt_back_and_the_next_host_goes_on_with_its_layers(tmp_path: Path) -> None:
    began = asyncio.Event()

    async def loop(attempt: LayeredAttempt) -> Outcome:
        state = attempt.run.get_layer("one", Counting).runtime_state
        if attempt.task.epoch == 2:
            return Outcome.candidate([attempt.task.attempt, state.count])
        state.count = 41
        await attempt.put_down()
        began.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with hosted(tmp_path, layered(loop).worker("works")) as dagbok:
        run = await dagbok.start(one())
        await began.wait()
    async with hosted(tmp_path, layered(loop).worker("works")) as dagbok:
        assert (await dagbok.wait(run)).json() == [1, 41]
        assert len(await events_of(dagbok, AttemptReleased)) == 1
        assert len(await events_of(dagbok, SessionResumed)) == 1


async def test_the_same_key_twice_is_one_run(tmp_path: Path) -> None:
    calls: list[str] = []

    async def loop(attempt: LayeredAttempt) -> Outcome:
        calls.append(attempt.task.task_id)
        return Outcome.candidate(len(calls))

    async with hosted(tmp_path, layered(loop).worker("works")) as dagbok:
        first, second = await asyncio.gather(dagbok.run(one(), key="k"), dagbok.run(one(), key="k"))
        third = await dagbok.run(one(), key="k")
    assert first.run == second.run == third.run
    assert [each.json() for each in (first, second, third)] == [1, 1, 1]
    assert calls == ["t"]


async def told(dagbok: Dagbok, run: str, after: int, most: int) -> list[tuple[int, str]]:
    """At most so many events behind a cursor, of a reader who then goes away."""
    found: list[tuple[int, str]] = []
    async for event in dagbok.events(run, after=after):
        found.append((event.seq, event.type))
        if len(found) == most:
            break
    return found


async def test_a_reader_who_comes_back_with_his_cursor_misses_nothing_and_is_stopped_by_the_end(tmp_path: Path) -> None:
    """Four events a connection, from the time when the run goes on; also with a host that came later."""

    async def loop(attempt: LayeredAttempt) -> Outcome:
        for number in range(10):
            attempt.run.get_layer("one", Counting).runtime_state.count = number
            await attempt.put_down()
        return Outcome.candidate(0)

    async def all_of(dagbok: Dagbok, run: str) -> list[tuple[int, str]]:
        found: list[tuple[int, str]] = []
        while new := await told(dagbok, run, found[-1][0] if found else 0, 4):
            found += new
        return found

    async with hosted(tmp_path, layered(loop).worker("works")) as dagbok:
        run = await dagbok.start(one())
        live = await all_of(dagbok, run)
        assert dagbok.status(run) == "succeeded"
    async with hosted(tmp_path, layered(loop).worker("works")) as dagbok:
        later = await all_of(dagbok, run)
    assert live == later
    assert [seq for seq, _ in live] == list(range(1, len(live) + 1))
    assert live[-1][1] == "RunSucceeded"
    assert [kind for _, kind in live].count("SessionSuspended") >= 10
