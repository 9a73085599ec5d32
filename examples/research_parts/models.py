"""Asks a language model for a value of a type, and says what the answer has cost."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TypeVar

from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelQuotaExceededError, ModelRequestRejectedError, UserError
from pydantic_ai.models import Model, infer_model
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import RunUsage, UsageLimits

from dagbok import Terminal, Usage
from research_parts.offline import stand_in

OFFLINE = "offline"
LIMITS = UsageLimits(request_limit=12)
"""Of one attempt: a model that calls tools for ever ends here."""

Said = TypeVar("Said", bound=BaseModel)


class Sources(BaseModel, frozen=True):
    """Where answers come from: a model and a folder of documents. A part of each task's inputs, so that any process
    can do it."""

    model: str
    base_url: str
    documents: str


async def ask(agent: Agent[str, Said], prompt: Mapping[str, object], sources: Sources) -> tuple[Said, Usage]:
    """What the agent says, and what that has cost. The agent's tools get the folder of documents.

    A refused connection, a rate limit or an error of the server is raised as it is: dagbok tries again, later. What
    will not change by itself, a wrong key say, is `Terminal`.
    """
    told = {name: value for name, value in prompt.items() if value}
    try:
        async with _model(agent.name or "", sources) as model:
            ran = await agent.run(
                json.dumps(told, ensure_ascii=False, indent=1),
                model=model,
                deps=sources.documents,
                usage_limits=LIMITS,
            )
    except (ModelRequestRejectedError, ModelQuotaExceededError, UserError) as error:
        raise Terminal(str(error)) from error
    return ran.output, _usage(ran.usage)


@asynccontextmanager
async def _model(role: str, sources: Sources) -> AsyncIterator[Model]:
    name = sources.model
    if name == OFFLINE:
        yield stand_in(role)
    elif ":" in name and not name.startswith("openai:") and not sources.base_url:
        yield infer_model(name)  # of any provider that Pydantic AI knows
    else:
        base_url = sources.base_url or os.environ.get("OPENAI_BASE_URL")
        key = os.environ.get("OPENAI_API_KEY") or ("none" if base_url else "")
        if not key:
            raise UserError("set OPENAI_API_KEY, or name an endpoint that needs none with --base-url")
        # No retries in here: dagbok does them, and each is in the log.
        async with AsyncOpenAI(api_key=key, base_url=base_url, max_retries=0) as client:
            yield OpenAIChatModel(name.removeprefix("openai:"), provider=OpenAIProvider(openai_client=client))


def _usage(used: RunUsage) -> Usage:
    return Usage(tokens=used.input_tokens + used.output_tokens, cost=str(used.cost or 0))
