"""A Pydantic AI agent made of layers: a catalogue, tools on it, a history that is kept, and the shape of an answer.

    dagbok run examples/layers_pydantic_ai.py                                 # offline, with a stand-in for the model
    dagbok run examples/layers_pydantic_ai.py --lose-after 2                  # the first attempt fails on its way
    dagbok run examples/layers_pydantic_ai.py --model openai-chat:gpt-5-mini  # with OPENAI_API_KEY
    dagbok session show last desk                                             # the conversation so far

A librarian's desk is asked one question after the other. Every message is in the session of the task before the next
thing happens: the attempt that follows one that failed, or was killed, goes on with the question that is due. The model
gets the newest messages only, behind the first prompt; the session has them all.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel
from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models import Model, infer_model
from pydantic_ai.models.function import AgentInfo, FunctionModel

from dagbok import Candidate, Outcome, TaskContext, TaskSpec, Verdict, verifier
from dagbok.agents.layers import Compositor, LayerNode, LayerProvider, ObjectLayer, PromptLayer
from dagbok.agents.layers.durable import LayeredAttempt, LayeredWorker
from dagbok.agents.layers.pydantic_ai import (
    PYDANTIC_AI_TRANSFORMERS,
    PydanticAIBridgeLayer,
    PydanticAIHistoryLayer,
    PydanticAIOutputLayer,
    keep_steps,
)

OFFLINE = "offline"
BOOKS = {"swarms": 3, "queens": 1, "honey": 0, "wasps": 2}


def main(model: str = OFFLINE, lose_after: int = 0) -> TaskSpec:
    """Ask a librarian for books.

    Parameters
    ----------
    model
        "offline", or any model that Pydantic AI knows.
    lose_after
        The first attempt fails behind so many answers; 0: it does not.
    """
    return TaskSpec(
        id="desk",
        goal="say of each book how many are there",
        worker="librarian",
        verifier="counted",
        inputs={"books": list(BOOKS), "model": model, "lose_after": lose_after},
    )


@dataclass
class Catalogue:
    """What the tools of the agent work on; the model never sees it."""

    books: dict[str, int]


class Answer(BaseModel):
    """What the agent must answer with."""

    book: str
    copies: int


async def copies_of(context: RunContext[Catalogue], book: str) -> int:
    """How many copies of a book are there."""
    return context.deps.books.get(book, 0)


def stand_in(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Looks the book of the last question up, then answers with what it was told."""
    parts = [part for message in messages for part in message.parts]
    book = str(next(part.content for part in reversed(parts) if isinstance(part, UserPromptPart)))
    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, {"book": book, "copies": last.content})])
    return ModelResponse(parts=[ToolCallPart("copies_of", {"book": book})])


def model_of(name: str) -> Model:
    """The stand-in, or a real one."""
    return FunctionModel(stand_in, model_name=OFFLINE) if name == OFFLINE else infer_model(name)


async def serve(attempt: LayeredAttempt) -> Outcome:
    """A book a turn, from wherever the conversation stands."""
    run, inputs = attempt.run, attempt.task.inputs
    history = run.get_layer("history", PydanticAIHistoryLayer)
    agent: Agent[Catalogue, Answer] = Agent(
        model_of(inputs["model"]),
        instructions=run.prompts,
        tools=run.tools,
        deps_type=Catalogue,
        output_type=run.get_layer("answer", PydanticAIOutputLayer).output_type,
    )
    deps = run.get_layer("desk", PydanticAIBridgeLayer).run_deps
    for book in inputs["books"][len(answers(history)) :]:
        async with agent.iter(book, message_history=history.for_next_run(), deps=deps) as steps:
            result = await keep_steps(steps, history, attempt.put_down)
        attempt.task.use(tokens=result.usage.input_tokens + result.usage.output_tokens)
        if attempt.task.attempt == 1 and len(answers(history)) == inputs["lose_after"]:
            raise ConnectionError("the line went dead")
    return Outcome.candidate([answer.model_dump() for answer in answers(history)])


def answers(history: PydanticAIHistoryLayer) -> list[Answer]:
    """What was answered so far, read from the messages: they are all that is kept."""
    parts = [part for message in history.message_history for part in message.parts]
    taken = {p.tool_call_id for p in parts if isinstance(p, ToolReturnPart) and p.outcome == "success"}
    calls = [part for part in parts if isinstance(part, ToolCallPart) and part.tool_name.startswith("final_result")]
    return [Answer.model_validate(call.args_as_dict()) for call in calls if call.tool_call_id in taken]


librarian = LayeredWorker(
    Compositor(
        [
            LayerNode("told", PromptLayer),
            LayerNode(
                "catalogue",
                LayerProvider.from_factory(layer_type=ObjectLayer, create=lambda _: ObjectLayer(Catalogue(BOOKS))),
            ),
            LayerNode(
                "desk",
                LayerProvider.from_factory(
                    layer_type=PydanticAIBridgeLayer,
                    create=lambda _: PydanticAIBridgeLayer[Catalogue](tool_entries=[copies_of]),
                ),
                deps={"object_layer": "catalogue"},
            ),
            LayerNode("history", PydanticAIHistoryLayer),
            LayerNode(
                "answer",
                LayerProvider.from_factory(
                    layer_type=PydanticAIOutputLayer, create=lambda _: PydanticAIOutputLayer(Answer)
                ),
            ),
        ],
        **PYDANTIC_AI_TRANSFORMERS,
    ),
    serve,
    configs={
        "told": {"prefix": "You are told the name of a book. Look up how many copies are there, and answer with that."},
        "history": {"max_messages": 6},
    },
).worker("librarian")


@verifier("counted", version="1")
def counted(candidate: Candidate, task: TaskContext) -> Verdict:
    """Every book once, in order, with what the catalogue has."""
    told = {answer["book"]: answer["copies"] for answer in candidate.json()}
    wrong = [book for book in task.inputs["books"] if told.get(book) != BOOKS[book]]
    return Verdict.failed(f"wrong or missing: {', '.join(wrong)}") if wrong else Verdict.passed()


if __name__ == "__main__":
    raise SystemExit("run it so: dagbok run examples/layers_pydantic_ai.py")
