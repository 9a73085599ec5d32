"""A LightAgent agent as a worker, and run tools in the form that LightAgent knows (extra `lightagent`).

LightAgent itself is not imported here: whoever passes an agent has it.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from threading import Lock
from typing import Protocol, cast

from dagbok.agents.integrations.json_outcome import parse_outcome
from dagbok.agents.integrations.prompt import prompt_of
from dagbok.agents.workers.context import TaskContext
from dagbok.agents.workers.definitions import SYNC_CONCURRENCY, Worker
from dagbok.events.errors import InvalidInput
from dagbok.events.specs import Outcome


class AgentResult(Protocol):
    """What `LightAgent.run(result_format="object")` returns, as far as it is read here."""

    @property
    def content(self) -> str:
        """What the agent said last."""

    @property
    def error(self) -> str | None:
        """Why it failed."""

    @property
    def usage(self) -> Mapping[str, object] | None:
        """Tokens."""


class Agent(Protocol):
    """A `LightAgent`, as far as it is used here."""

    def run(
        self,
        query: str,
        *,
        result_format: str,
        user_id: str,
        run_group_id: str,
        idempotency_key: str,
        cancellation_token: Cancellation,
    ) -> object:
        """Answer; blocks."""


MakeAgent = Callable[[TaskContext], Agent]
"""Makes an agent for one attempt."""


class AgentFailed(Exception):
    """The agent ended with an error of its own: the endpoint was not reached, say. It may be tried again."""


@dataclass(frozen=True)
class Cancellation:
    """What LightAgent looks at between its requests: it ends when nobody wants the result any more."""

    task: TaskContext

    @property
    def cancelled(self) -> bool:
        """True once the attempt is over."""
        return self.task.cancelled

    @property
    def reason(self) -> str:
        """Why."""
        return "the attempt is closed"

    @property
    def token_id(self) -> str:
        """The attempt."""
        return f"{self.task.run_id}:{self.task.task_id}:{self.task.epoch}"


def lightagent_worker(
    key: str,
    agent: Agent | MakeAgent,
    *,
    prompt: Callable[[TaskContext], str] = prompt_of,
    concurrency: int = SYNC_CONCURRENCY,
    pure: bool = False,
) -> Worker:
    """The worker `key`: hands a task to the agent as `prompt` puts it, and reads its answer with `parse_outcome`.

    `agent`: an agent, or a function that makes one for each attempt. A LightAgent keeps the state of its conversation
    in itself, so one agent does one attempt at a time; with a function, `concurrency` of them run at once, in threads
    of their own. `pure`: the agent's tools change nothing in the world.

    - Free text is no outcome: the attempt fails with code `invalid_outcome` and the next one is told the form
      (`NotAnOutcome`).
    - The agent gets the user of the run, the run as `run_group_id`, and `idempotency_key`
      `<run>:<task>:<phase>`. The key is the same in every attempt: what an attempt has done in the world, the next one
      can recognise.
    - The tokens that it used are noted (`TaskContext.use`), whatever comes of them.

    An error of the agent raises `AgentFailed`, which is retried with backoff.
    """
    single = agent if hasattr(agent, "run") else None
    if single is None and not callable(agent):
        raise InvalidInput(f"{key}: {type(agent).__name__} is neither a LightAgent nor a function that makes one")
    one_at_a_time = Lock()

    def work(task: TaskContext) -> Outcome:
        if single is None:
            return _ask(cast(MakeAgent, agent)(task), task, prompt)
        # Also against a call that was given up: its thread may still be using the agent.
        with one_at_a_time:
            return _ask(cast(Agent, single), task, prompt)

    return Worker(key, work, pure, 1 if single is not None else concurrency)


def lightagent_tools(functions: Iterable[Callable[..., Awaitable[object]]]) -> list[Callable[..., Awaitable[object]]]:
    """`RunTools.functions()` with the `tool_info` that LightAgent wants; pass them as `LightAgent(tools=…)`."""
    return [_described(function) for function in functions]


def _ask(agent: Agent, task: TaskContext, prompt: Callable[[TaskContext], str]) -> Outcome:
    said = cast(
        AgentResult,
        agent.run(
            prompt(task),
            result_format="object",
            user_id=task.security.user or "dagbok",
            run_group_id=task.run_id,
            idempotency_key=f"{task.run_id}:{task.task_id}:{task.phase}",
            cancellation_token=Cancellation(task),
        ),
    )
    tokens = (said.usage or {}).get("total_tokens")
    if isinstance(tokens, int):
        task.use(tokens=tokens)
    if said.error:
        raise AgentFailed(said.error)
    return parse_outcome(said.content)


def _described(function: Callable[..., Awaitable[object]]) -> Callable[..., Awaitable[object]]:
    @wraps(function)
    async def tool(*arguments: object, **named: object) -> object:
        return await function(*arguments, **named)

    parameters = inspect.signature(function, eval_str=True).parameters.values()
    info = {
        "tool_name": function.__name__,
        "tool_title": function.__name__.replace("_", " "),
        "tool_description": inspect.getdoc(function) or "",
        "tool_params": [
            {
                "name": parameter.name,
                "type": "integer" if parameter.annotation is int else "string",
                "description": parameter.name.replace("_", " "),
                "required": parameter.default is inspect.Parameter.empty,
            }
            for parameter in parameters
        ],
    }
    tool.__dict__["tool_info"] = info
    return tool
