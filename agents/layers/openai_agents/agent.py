"""An agent of the SDK from a run of layers."""

from __future__ import annotations

from typing import Any, TypeAlias

from agents import Agent, FunctionTool  # noqa: TID251 - the SDK is called so

from dagbok.agents.layers.run import CompositorRun

Run: TypeAlias = CompositorRun[str, str, FunctionTool]
"""Of a compositor with `OPENAI_AGENTS_TRANSFORMERS`."""

BETWEEN = "\n\n"


def agent_of(run: Run, *, name: str = "agent", **options: Any) -> Agent[Any]:
    """An agent with the prompts of a run as instructions and with its tools, as they are now.

    `options` are those of `Agent`: model, output_type, hooks, … Tools among them come behind those of the run.
    """
    tools = [*run.tools, *options.pop("tools", ())]
    return Agent(name=name, instructions=BETWEEN.join(run.prompts) or None, tools=tools, **options)


def input_of(run: Run) -> str:
    """The user prompts of a run, as `Runner.run` takes its input; empty without any."""
    return BETWEEN.join(run.user_prompts)
