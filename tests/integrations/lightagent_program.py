"""Runs tasks with LightAgent agents as workers: `lightagent_program.py FOLDER URL`, in an environment that has
LightAgent."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from dagbok import Candidate, Dagbok, Outcome, TaskContext, TaskSpec, verifier, worker
from dagbok.agents.integrations.lightagent import Agent, lightagent_tools, lightagent_worker
from dagbok.agents.integrations.run_tools import run_tools

LightAgent: Any = import_module("LightAgent").LightAgent
GOALS = ("plain", "chatty", "planner", "stuck", "shaky", "steward")


@worker("patient")
async def patient(task: TaskContext) -> Outcome:
    """For ever."""
    await asyncio.Event().wait()
    raise AssertionError


@verifier("yes", version="1")
def yes(candidate: Candidate, task: TaskContext) -> bool:
    """Whatever it is."""
    return True


def weather(city: str) -> str:
    """The weather of a city."""
    return f"It rains in {city}."


weather.tool_info = {  # type: ignore[attr-defined]  # that is how LightAgent is told about a tool
    "tool_name": "weather",
    "tool_description": "The weather of a city.",
    "tool_params": [{"name": "city", "description": "which", "type": "string", "required": True}],
}


async def main(folder: str, url: str) -> None:
    """One run with a task per goal, beside one that idles."""
    tools: list[Callable[..., object]] = [weather]

    def make(task: TaskContext) -> Agent:
        agent: Agent = LightAgent(name=task.goal, model="stub-1", api_key="none", base_url=url, tools=tools)
        return agent

    one = LightAgent(name="one", model="stub-1", api_key="none", base_url=url)
    definitions = (lightagent_worker("agent", make), lightagent_worker("one-agent", one), patient, yes)
    async with (
        Dagbok.embedded(folder, *definitions, projector="none") as dagbok,
        run_tools(folder, tenant="local", project="default", control=dagbok) as run,
    ):
        tools += lightagent_tools(run.functions())
        await dagbok.start(TaskSpec(goal="idle", worker="patient", verifier="yes"), key="idle")
        tasks = [TaskSpec(id=goal, goal=goal, worker="agent", verifier="yes") for goal in GOALS]
        shared = [TaskSpec(id=f"one-{n}", goal="plain", worker="one-agent", verifier="yes") for n in range(3)]
        result = await dagbok.run([*tasks, *shared], key="agents")
        sys.stdout.write(f"{result.status}\n")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
