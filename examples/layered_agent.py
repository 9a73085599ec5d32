"""An agent of layers that talks for many turns, and goes on where it was when its process is killed.

    dagbok run examples/layered_agent.py --pace-s 0.5      # kill -9 it, and say the same again
    dagbok session show last interview                     # the conversation, as it was put down last

Two layers: what the agent is told (a prompt), and its history, which it keeps. The loop asks the next question, hands
prompts and history to the model, and puts the layers down: from then on that turn is in the log. The model is a
stand-in without a key or a network; `docs/agents.md` shows real ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pydantic import BaseModel, Field

from dagbok import Candidate, Outcome, TaskContext, TaskSpec, Verdict, verifier
from dagbok.agents.layers import Compositor, EmptyLayerConfig, Growing, LayerNode, NoLayerDeps, PlainLayer, PromptLayer
from dagbok.agents.layers.durable import LayeredAttempt, LayeredWorker

QUESTIONS = ("What is a swarm?", "Who scouts?", "How do they tell?", "Who decides?", "When do they fly?", "And then?")


def main(pace_s: float = 0.0) -> TaskSpec:
    """Interview a beekeeper.

    Parameters
    ----------
    pace_s
        How long each answer takes, in seconds.
    """
    return TaskSpec(
        id="interview",
        goal="interview a beekeeper",
        worker="interviewer",
        verifier="all-asked",
        inputs={"questions": list(QUESTIONS), "pace_s": pace_s},
    )


class Turn(BaseModel):
    """A question, its answer, and in which attempt at the task it was asked."""

    question: str
    answer: str
    attempt: int


class History(BaseModel):
    """What was said so far."""

    turns: Growing[Turn] = Field(default_factory=Growing)


class HistoryLayer(PlainLayer[NoLayerDeps, EmptyLayerConfig, History]):
    """Remembers the conversation. Putting a turn down costs what is new in it, however many there are."""


async def model(prompts: list[str], history: Sequence[Turn], question: str) -> str:
    """A stand-in that shows what it was handed."""
    return f"{question.rstrip('?')}: asked behind {len(history)} turns, by someone who is told to {prompts[0]}"


async def interview(attempt: LayeredAttempt) -> Outcome:
    """One question a turn, from wherever the conversation stands."""
    history = attempt.run.get_layer("history", HistoryLayer).runtime_state
    prompts = [str(prompt.value) for prompt in attempt.run.prompts]
    for question in attempt.task.inputs["questions"][len(history.turns) :]:
        await asyncio.sleep(attempt.task.inputs["pace_s"])
        answer = await model(prompts, history.turns, question)
        history.turns.append(Turn(question=question, answer=answer, attempt=attempt.task.epoch))
        await attempt.put_down()
    return Outcome.candidate([turn.model_dump() for turn in history.turns])


interviewer = LayeredWorker(
    Compositor([LayerNode("told", PromptLayer), LayerNode("history", HistoryLayer)]),
    interview,
    configs={"told": {"prefix": "be brief"}},
).worker("interviewer")


@verifier("all-asked", version="1")
def all_asked(candidate: Candidate, task: TaskContext) -> Verdict:
    """Every question once, each with an answer that knew all turns before it."""
    turns = candidate.json()
    asked = [turn["question"] for turn in turns] == task.inputs["questions"]
    known = all(f"behind {number} turns" in turn["answer"] for number, turn in enumerate(turns))
    return Verdict.passed() if asked and known else Verdict.failed("a turn is missing, or forgot those before it")


if __name__ == "__main__":
    raise SystemExit("run it so: dagbok run examples/layered_agent.py")
