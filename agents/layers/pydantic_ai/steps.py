"""Keeps a run of an agent step by step, so that a stop loses no more than the step that it interrupts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from pydantic_ai import AgentRun, AgentRunResult

from dagbok.agents.layers.pydantic_ai.history import PydanticAIHistoryLayer

DepsT = TypeVar("DepsT")
OutputT = TypeVar("OutputT")


async def keep_steps(
    run: AgentRun[DepsT, OutputT],
    history: PydanticAIHistoryLayer,
    put_down: Callable[[], Awaitable[None]] | None = None,
) -> AgentRunResult[OutputT]:
    """Drive a run of `Agent.iter` to its end, and append each message to the history as it comes.

    What the model wants to call is in the history before it is called, and is put down then when `put_down` is given
    (`LayeredAttempt.put_down`). A run that raises leaves the messages it had. Raises what the run raises.
    """
    kept = 0

    def keep() -> bool:
        nonlocal kept
        new = run.new_messages()[kept:]
        history.append_messages(new)
        kept += len(new)
        return bool(new)

    try:
        async for _ in run:
            if keep() and put_down is not None:
                await put_down()
    finally:
        keep()
    if run.result is None:
        raise RuntimeError("The run of the agent ended without a result")
    return run.result
