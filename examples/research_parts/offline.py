"""Stand-ins for language models: fixed rules over the same messages and tools, for a machine without key and network.

They take sentences that share words with the question. One of them is careless, as models are: it shortens a long
quote, until it is told not to.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel

from research_parts.corpus import Quote, sentences, words_of

MAX_PARTS = 3
MAX_QUOTES = 3
LONG_WORDS = 24
KEPT_WORDS = 8

Said = dict[str, Any]
"""Arguments of a tool, or of the answer."""


def stand_in(role: str) -> Model:
    """The stand-in for the model of an agent, by the agent's name."""
    return FunctionModel(ROLES[role], model_name=f"offline-{role}")


def plan(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """A part for each document whose beginning has words of the question, at most three; not for those that have only
    half as many as the best."""
    asked = _prompt(messages)
    wanted = words_of(asked["question"])
    shared = {name: len(wanted & words_of(text)) for name, text in asked["documents"].items()}
    best = max(shared.values())
    fitting = sorted((name for name in shared if 2 * shared[name] > best or not best), key=lambda name: -shared[name])
    return _answer(info, {"questions": [f"{_title(name)}: {asked['question']}" for name in fitting[:MAX_PARTS]]})


def research(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Search, read what was found, and quote the sentences that fit best."""
    asked, returned = _prompt(messages), _returned(messages)
    if not returned:
        return _call("search", {"words": asked["question"]})
    found = [Quote.model_validate(item) for item in returned[0]]
    if not found:
        return _answer(info, {"answer": "The documents do not say.", "quotes": []})
    # A part is named after a document; it need not be the one that was found first.
    named = [quote.document for quote in found if _title(quote.document) in asked["question"]]
    document = (named or [found[0].document])[0]
    if len(returned) == 1:
        return _call("read", {"document": document})
    wanted, text = words_of(asked["question"]), sentences(returned[1])
    fitting = [sentence for sentence in text if wanted & words_of(sentence)] or text[:1]
    best = sorted(fitting, key=lambda sentence: -len(wanted & words_of(sentence)))[:MAX_QUOTES]
    best.sort(key=text.index)
    careful = "problems_of_your_last_answer" in asked
    quotes = [Quote(document=document, text=one if careful else _shortened(one)).model_dump() for one in best]
    return _answer(info, {"answer": " ".join(best), "quotes": quotes})


def judge(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """An answer is good when it shares a word with the question."""
    asked = _prompt(messages)
    relevant = bool(words_of(asked["question"]) & words_of(asked["answer"]))
    problems = [] if relevant else ["the answer does not speak of what was asked"]
    return _answer(info, {"passes": relevant, "problems": problems})


def write(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """All answers that have quotes, each with the marks of these."""
    quotes: list[Said] = []
    lines: list[str] = []
    findings = _prompt(messages)["findings"]
    for part in [part for part in findings if part["quotes"]] or findings[:1]:
        quotes += [quote for quote in part["quotes"] if quote not in quotes]
        marks = "".join(f"[{quotes.index(quote) + 1}]" for quote in part["quotes"])
        lines.append(f"{part['answer']} {marks}")
    return _answer(info, {"text": "\n\n".join(lines), "quotes": quotes})


ROLES: dict[str, Callable[[list[ModelMessage], AgentInfo], ModelResponse]] = {
    "planner": plan,
    "researcher": research,
    "judge": judge,
    "writer": write,
}


def _title(document: str) -> str:
    return document.partition(".")[0].replace("-", " ").capitalize()


def _shortened(sentence: str) -> str:
    words = sentence.split()
    return sentence if len(words) <= LONG_WORDS else " ".join(words[:KEPT_WORDS] + words[-KEPT_WORDS:])


def _prompt(messages: list[ModelMessage]) -> Any:
    texts = [part.content for message in messages for part in message.parts if isinstance(part, UserPromptPart)]
    return json.loads(str(texts[0]))


def _returned(messages: list[ModelMessage]) -> list[Any]:
    return [part.content for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]


def _call(tool: str, arguments: Said) -> ModelResponse:
    return ModelResponse(parts=[ToolCallPart(tool, arguments)])


def _answer(info: AgentInfo, said: Said) -> ModelResponse:
    return _call(info.output_tools[0].name, said)
