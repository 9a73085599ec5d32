"""Asks a language model for a value of a type, and notes what that has cost."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import TypeVar

from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelAPIError, ModelQuotaExceededError, ModelRequestRejectedError, UserError
from pydantic_ai.models import Model, infer_model
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import RunUsage, UsageLimits

from dagbok import Retry, TaskContext, Terminal
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


async def ask(task: TaskContext, agent: Agent[str, Said], prompt: Mapping[str, object]) -> Said:
    """What the agent says of a task whose inputs are `Sources`. The agent's tools get the folder of documents.

    What it has used is noted, also of an answer that never came. A refused connection, a rate limit or an error of the
    server is raised as it is: dagbok tries again, later, and not before the server wants to be asked (`Retry-After`).
    What will not change by itself, a wrong key say, is `Terminal`.
    """
    sources, used = Sources.model_validate(task.inputs), RunUsage()
    told = json.dumps({name: value for name, value in prompt.items() if value}, ensure_ascii=False, indent=1)
    try:
        async with _model(agent.name or "", sources) as model:
            ran = await agent.run(told, model=model, deps=sources.documents, usage=used, usage_limits=LIMITS)
    except (ModelRequestRejectedError, ModelQuotaExceededError, UserError) as error:
        raise Terminal(str(error)) from error
    except ModelAPIError as error:
        if error.retry_after is None:
            raise
        raise Retry(str(error), after_s=error.retry_after) from error
    finally:
        task.use(tokens=used.input_tokens + used.output_tokens, cost=round(used.cost or Decimal(), 12))
    return ran.output


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
