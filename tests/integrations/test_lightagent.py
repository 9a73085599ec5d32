"""LightAgent agents as workers: the real package, in an environment of its own, with a stub for its model."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from dagbok.events.ids import run_id
from dagbok.events.log.sqlite import SqliteLog
from dagbok.events.run.events import (
    AttemptFailed,
    CandidateSubmitted,
    DecompositionAccepted,
    Event,
    RunPaused,
    TaskBackedOff,
    TaskBlocked,
    TaskVerified,
)
from tests.support.audit import check_decided, effective_events
from tests.support.chat_stub import ANSWER_TOKENS, PROMPT_TOKENS, Asked, Call, Refuse, Reply, Say, chat_stub
from tests.support.lightagent_env import ROOT, lightagent_python

PROGRAM = Path(__file__).with_name("lightagent_program.py")
TIMEOUT_S = 120.0
IDLE = run_id("local", "default", "idle")
CHILDREN = [
    {"goal": "child", "worker": "agent", "verifier": "yes", "id": "child-1"},
    {"goal": "child", "worker": "agent", "verifier": "yes", "id": "child-2", "depends_on": ["child-1"], "inputs": 2},
]
FENCED = '```json\n{"kind": "candidate", "content": "fine"}\n```'

E = TypeVar("E", bound=Event)


def task_of(asked: Asked) -> Any:
    """The task as the agent was told it, without the form behind it."""
    return json.JSONDecoder().raw_decode(asked.user[0])[0]


def answer(asked: Asked) -> Reply:
    """What a model would say to each goal."""
    task = task_of(asked)
    match task["goal"], "wrong_with_the_last_attempt" in task, len(asked.returned):
        case "plain", _, 0:
            return Call("weather", {"city": "Bergen"}) if "weather" in asked.tools else Say(candidate("no tools"))
        case "plain", _, _:
            return Say(candidate({"weather": asked.returned[0]}))
        case "chatty", False, _:
            return Say("Sure! The answer is 42.")
        case "chatty", True, _:
            return Say(FENCED)
        case "planner", _, _ if task["phase"] == "solve":
            return Say(json.dumps({"kind": "decompose", "tasks": CHILDREN, "rationale": "two are better"}))
        case "planner", _, _:
            return Say(candidate(task["published_before"]))
        case "child", _, _:
            return Say(candidate({"inputs": task.get("inputs"), "before": list(task.get("published_before", {}))}))
        case "stuck", _, _:
            return Say(json.dumps({"kind": "blocked", "reason": "I need a password"}))
        case "shaky", False, _:
            return Refuse(400, "not today")
        case "steward", _, 0:
            return Call("get_run", {"run": IDLE})
        case "steward", _, 1:
            return Call("pause", {"run": IDLE, "reason": "nobody needs it"})
        case "steward", _, _:
            return Say(candidate([json.loads(said)["status"] for said in asked.returned]))
    return Say(candidate("at last"))


def candidate(content: object) -> str:
    """A candidate as JSON."""
    return json.dumps({"kind": "candidate", "content": content})


@dataclass(frozen=True)
class Ran:
    """What the program did: what it printed, what its log says, and what the model was asked."""

    said: str
    events: Sequence[Event]
    asked: Sequence[Asked]

    def of(self, kind: type[E], task: str) -> list[E]:
        """The events of a kind, of a task."""
        return [event for event in self.events if isinstance(event, kind) and getattr(event, "task", "") == task]

    def result(self, task: str) -> Any:
        """What a task has published."""
        assert self.of(TaskVerified, task)
        (artifact,) = self.of(CandidateSubmitted, task)[-1].artifacts
        return json.loads(artifact.inline or b"null")

    def prompts(self, goal: str) -> list[Asked]:
        """The first request of each attempt on a goal."""
        return [asked for asked in self.asked if task_of(asked)["goal"] == goal and not asked.returned]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return asyncio.run(run_program(tmp_path_factory.mktemp("lightagent")))


async def run_program(folder: Path) -> Ran:
    """Run it once for all tests: LightAgent takes a second to be imported."""
    with chat_stub(answer) as stub:
        program = await asyncio.create_subprocess_exec(
            *(lightagent_python(), PROGRAM, folder / "data", stub.url),
            cwd=folder,  # LightAgent makes a folder for its logs
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        said, errors = await asyncio.wait_for(program.communicate(), TIMEOUT_S)
    assert program.returncode == 0, errors.decode()
    log = SqliteLog.open(folder / "data" / "log.db")
    try:
        await check_decided(log)
        return Ran(said.decode(), [event for _, event in await effective_events(log)], stub.asked)
    finally:
        await log.close()


def test_a_json_candidate_is_verified_and_its_tokens_are_counted(ran: Ran) -> None:
    assert ran.result("plain") == {"weather": "It rains in Bergen."}
    (submitted,) = ran.of(CandidateSubmitted, "plain")
    assert submitted.usage.tokens == 2 * (PROMPT_TOKENS + ANSWER_TOKENS)


def test_free_text_is_no_outcome_it_spends_an_attempt_and_the_next_is_told_the_form(ran: Ran) -> None:
    (failed,) = ran.of(AttemptFailed, "chatty")
    assert (failed.failure.failure, failed.failure.code, failed.failure.type) == (
        "retryable",
        "invalid_outcome",
        "NotAnOutcome",
    )
    assert failed.counted
    assert failed.usage.tokens == PROMPT_TOKENS + ANSWER_TOKENS
    assert "'Sure! The answer is 42.'" in failed.failure.message
    first, second = ran.prompts("chatty")
    assert "wrong_with_the_last_attempt" not in task_of(first)
    told = task_of(second)["wrong_with_the_last_attempt"]
    assert "free text is not an outcome" in told
    assert '{"kind": "candidate", "content":' in told
    assert ran.result("chatty") == "fine"


def test_a_decomposition_becomes_tasks_and_what_they_publish_comes_back(ran: Ran) -> None:
    (accepted,) = ran.of(DecompositionAccepted, "planner")
    assert (accepted.new, accepted.rationale) == (("child-1", "child-2"), "two are better")
    assert ran.result("planner") == {
        "child-1": {"result": {"inputs": None, "before": []}},
        "child-2": {"result": {"inputs": 2, "before": ["child-1"]}},
    }


def test_a_blocked_outcome_waits_for_a_person(ran: Ran) -> None:
    (blocked,) = ran.of(TaskBlocked, "stuck")
    assert (blocked.code, blocked.reason) == ("worker_blocked", "I need a password")
    assert ran.said == "blocked\n"


def test_an_error_of_the_endpoint_is_tried_again_later(ran: Ran) -> None:
    (failed,) = ran.of(AttemptFailed, "shaky")
    assert (failed.failure.failure, failed.failure.type) == ("retryable", "AgentFailed")
    assert "not today" in failed.failure.message
    assert len(ran.of(TaskBackedOff, "shaky")) == 1
    assert ran.result("shaky") == "at last"


def test_an_agent_looks_at_another_run_and_pauses_it_with_its_tools(ran: Ran) -> None:
    assert ran.result("steward") == ["running", "paused"]
    assert [event.reason for event in ran.events if isinstance(event, RunPaused)] == ["nobody needs it"]
    (asked,) = ran.prompts("steward")
    pause = asked.tools["pause"]
    assert (set(pause["properties"]), set(pause["required"])) == ({"run", "reason"}, {"run", "reason"})
    assert asked.tools["list_tasks"]["properties"]["limit"]["type"] == "integer"


def test_an_agent_that_is_passed_itself_does_several_tasks(ran: Ran) -> None:
    assert [ran.result(f"one-{number}") for number in range(3)] == ["no tools"] * 3


def test_the_adapter_does_not_need_lightagent_to_be_imported() -> None:
    code = "import sys, dagbok, dagbok.agents.integrations.lightagent; print('LightAgent' in sys.modules)"
    done = subprocess.run([lightagent_python(), "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
