"""What the worker tells a LightAgent, and how it shares one: with agents that write down what they are asked."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dagbok import Artifact, DagbokError, Limits, Outcome, TaskContext, worker
from dagbok.agents.integrations.json_outcome import OUTCOME_FORM
from dagbok.agents.integrations.lightagent import lightagent_worker
from dagbok.agents.integrations.prompt import MAX_ARTIFACT_BYTES
from dagbok.events.run.events import AttemptFailed
from tests.support.hosts import events_of, hosted, spec, until

DONE = '{"kind": "candidate", "content": 1}'


@dataclass(frozen=True)
class Answer:
    """As `LightAgent.RunResult`."""

    content: str = DONE
    error: str | None = None
    usage: dict[str, object] | None = None


@dataclass
class Scripted:
    """An agent that says what it is told to say, and remembers the questions."""

    say: Callable[[int], Answer] = lambda number: Answer()
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def run(self, query: str, **options: Any) -> Answer:
        """As `LightAgent.run`."""
        self.asked.append((query, options))
        return self.say(len(self.asked))


async def test_the_idempotency_key_is_that_of_the_task_in_every_attempt(tmp_path: Path) -> None:
    agent = Scripted(lambda number: Answer(error="[LA-X] no") if number == 1 else Answer())
    async with hosted(tmp_path, lightagent_worker("agent", agent)) as dagbok:
        result = await dagbok.run(spec("agent", id="a"))
    first, second = [options for _, options in agent.asked]
    assert first["idempotency_key"] == second["idempotency_key"] == f"{result.run}:a:solve"
    assert (second["user_id"], second["run_group_id"], second["result_format"]) == ("local", result.run, "object")


async def test_an_agent_is_told_the_task_what_was_published_and_the_form(tmp_path: Path) -> None:
    @worker("publish")
    async def publish(task: TaskContext) -> Outcome:
        """Small and large, text and not."""
        return Outcome.candidate(
            {"small": 1},
            artifacts={
                "note": Artifact(content="read me", media_type="text/plain"),
                "large": "x" * (MAX_ARTIFACT_BYTES + 1),
                "image": b"\x89PNG",
            },
        )

    agent = Scripted()
    async with hosted(tmp_path, publish, lightagent_worker("agent", agent)) as dagbok:
        before = spec("publish", id="before")
        task = spec("agent", depends_on=["before"], inputs={"n": 1}, contract="be kind")
        assert (await dagbok.run([before, task])).succeeded
    ((query, _),) = agent.asked
    told, end = json.JSONDecoder().raw_decode(query)
    assert query[end:] == f"\n\n{OUTCOME_FORM}"
    published = told["published_before"].pop("before")
    assert told == {
        "goal": "do it",
        "phase": "solve",
        "inputs": {"n": 1},
        "acceptance_contract": "be kind",
        "published_before": {},
    }
    assert (published["result"], published["note"]) == ({"small": 1}, "read me")
    assert (published["large"]["not_shown"], published["image"]["not_shown"]) == (
        "application/json",
        "application/octet-stream",
    )
    assert published["image"]["size_bytes"] == 4


async def test_free_text_to_the_end_fails_the_task_with_the_code_of_an_invalid_outcome(tmp_path: Path) -> None:
    agent = Scripted(lambda number: Answer("I did it!", usage={"total_tokens": 7}))
    async with hosted(tmp_path, lightagent_worker("agent", agent)) as dagbok:
        result = await dagbok.run(spec("agent", id="a"), limits=Limits(max_attempts=2, backoff_base_ms=1))
        failed = await events_of(dagbok, AttemptFailed)
    assert (result.status, result.failed) == ("failed", {"a": "invalid_outcome"})
    assert [event.usage.tokens for event in failed] == [7, 7]
    assert len(agent.asked) == 2


async def test_an_agent_that_nobody_waits_for_is_told_so_and_shared_with_nobody_before_it_ends(tmp_path: Path) -> None:
    begun, may_end, alone = threading.Event(), threading.Event(), list[bool]()

    def say(number: int) -> Answer:
        begun.set()
        if number == 1:
            assert may_end.wait(30)
        else:
            alone.append(may_end.is_set())
        return Answer()

    agent = Scripted(say)
    async with hosted(tmp_path, lightagent_worker("agent", agent)) as dagbok:
        run = await dagbok.start(spec("agent"))
        await asyncio.to_thread(begun.wait, 30)
        token = agent.asked[0][1]["cancellation_token"]
        assert not token.cancelled
        await dagbok.cancel(run)
        await until(dagbok, lambda: bool(token.cancelled))
        assert token.reason
        after = await dagbok.start(spec("agent"))
        await until(dagbok, lambda: dagbok.progress(after) == {"running": 1})
        may_end.set()
        assert (await dagbok.wait(after)).succeeded
    assert alone == [True]
    assert token.token_id.startswith(run)


async def test_agents_that_are_made_for_each_attempt_work_side_by_side(tmp_path: Path) -> None:
    together = threading.Barrier(3)

    def make(task: TaskContext) -> Scripted:
        return Scripted(lambda number: Answer(json.dumps({"kind": "candidate", "content": together.wait(30) >= 0})))

    async with hosted(tmp_path, lightagent_worker("agent", make)) as dagbok:
        assert (await dagbok.run([spec("agent") for _ in range(3)])).succeeded


def test_what_is_neither_an_agent_nor_makes_one_is_refused_at_once() -> None:
    with pytest.raises(DagbokError, match="int is neither a LightAgent nor a function that makes one"):
        lightagent_worker("agent", 1)  # type: ignore[arg-type]  # that is the point
