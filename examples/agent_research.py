"""Answers a question from documents with language models, and publishes no quote that is not in a document.

    dagbok run examples/agent_research.py "How do bees survive the winter?"
    dagbok run examples/agent_research.py "…" --model gpt-5-mini                  # with OPENAI_API_KEY
    dagbok run examples/agent_research.py "…" --model qwen3 --base-url http://localhost:11434/v1 --documents notes/

Without `--model` it needs no key and no network: stand-ins with fixed rules answer (`research_parts/offline.py`).

`research` asks a planner for parts, one task each. `investigate` searches and reads; its findings are judged twice:
their quotes by a comparison with the documents, their sense by another model with a rubric. What is wrong reaches the
next attempt. When all are verified, `research` runs again and writes the answer, which is published only when every
quote in it stands in a document and comes from a verified finding.
"""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import BaseModel, Field
from pydantic_ai import Agent, ModelRetry, RunContext
from research_parts import corpus
from research_parts.corpus import DOCUMENTS, Quote
from research_parts.models import OFFLINE, Sources, ask

from dagbok import Artifact, Candidate, Code, DagbokError, Outcome, TaskContext, TaskSpec, Verdict, verifier, worker

RUBRIC = """\
You judge findings of a researcher; you did not write them. They pass when all of this holds:
- the answer answers the question that was asked, and not another one;
- everything that the answer says follows from its quotes; nothing is added from general knowledge;
- it is plain and short. When the quotes do not answer the question, saying so is a good answer.
Name each problem in one sentence that tells how to mend it. No problem: it passes."""

MARK = re.compile(r"\[(\d+)\]")


class Plan(BaseModel):
    """The parts of a question."""

    questions: list[str] = Field(min_length=1, max_length=4, description="each can be answered without the others")


class Findings(BaseModel):
    """The answer to a part."""

    answer: str = Field(min_length=1, description="at most three sentences")
    quotes: list[Quote] = Field(description="what the answer rests on")


class Judgement(BaseModel):
    """What the judge says of findings."""

    passes: bool
    problems: list[str]


class Report(BaseModel):
    """The answer to the whole question."""

    text: str = Field(min_length=1, description="the answer; [1], [2] … behind a sentence name the quotes it rests on")
    quotes: list[Quote] = Field(description="number 1 first, each taken from the findings as it is there")


planner = Agent(
    name="planner",
    deps_type=str,
    output_type=Plan,
    retries=2,
    instructions="Divide the question into at most four parts that can be answered from the documents, side by side.",
)
researcher = Agent(
    name="researcher",
    deps_type=str,
    output_type=Findings,
    retries=2,
    instructions="Answer from the documents alone: search, read what looks promising, and quote word for word.",
)
judge = Agent(name="judge", deps_type=str, output_type=Judgement, retries=2, instructions=RUBRIC)
writer = Agent(
    name="writer",
    deps_type=str,
    output_type=Report,
    retries=2,
    instructions="Answer the question from the findings alone, without repetition. Every paragraph has its marks.",
)


@researcher.tool
def search(context: RunContext[str], words: str) -> list[Quote]:
    """Find sentences that have these words in them."""
    return corpus.search(context.deps, words)


@researcher.tool
def read(context: RunContext[str], document: str) -> str:
    """Read a document by its name."""
    found = corpus.load(context.deps).get(document)
    if found is None:
        raise ModelRetry(f"there is no {document!r}, only {', '.join(corpus.load(context.deps))}")
    return found


def main(
    question: str = "How does a swarm choose its home?",
    *,
    model: str = OFFLINE,
    base_url: str = "",
    documents: Path = DOCUMENTS,
) -> TaskSpec:
    """Answer a question from a folder of Markdown and text files.

    `model`: of OpenAI or of the endpoint at `base_url` (else `$OPENAI_BASE_URL`), or `provider:model` as Pydantic AI
    names it. The key is read from `$OPENAI_API_KEY`.
    """
    folder = str(documents.resolve())
    if not documents.is_dir() or not corpus.load(folder):
        raise DagbokError(f"no documents in {documents}", code=Code.INVALID_SPEC, advice="name a folder of .md or .txt")
    inputs = Sources(model=model, base_url=base_url, documents=folder).model_dump()
    return TaskSpec(goal=question, worker="research", verifier="check-report", inputs=inputs)


# Not `pure`: such a worker may be called twice at once, and here every call costs money.
@worker("research")
async def research(task: TaskContext) -> Outcome:
    """Plan the parts; when they are verified, write the answer."""
    if task.phase == "integrate":
        findings = [part.json() for part in task.dependencies.values()]
        prompt = {"question": task.goal, "findings": findings, "problems_of_your_last_answer": task.diagnostics}
        report = await ask(task, writer, prompt)
        page = Artifact(content=_page(task.goal, report), media_type="text/markdown")
        return Outcome.candidate(report.model_dump(), artifacts={"answer.md": page})
    documents = corpus.beginnings(Sources.model_validate(task.inputs).documents)
    plan = await ask(task, planner, {"question": task.goal, "documents": documents})
    return Outcome.decompose(
        [TaskSpec(goal=part, worker="investigate", verifier="judge", inputs=task.inputs) for part in plan.questions]
    )


@worker("investigate")
async def investigate(task: TaskContext) -> Outcome:
    """Answer a part of the question from the documents."""
    prompt = {"question": task.goal, "problems_of_your_last_answer": task.diagnostics}
    return Outcome.candidate((await ask(task, researcher, prompt)).model_dump())


# `config` is a part of what a run is bound to: under another rubric, a run that has begun is not judged on.
@verifier("judge", version="1", config={"rubric": RUBRIC})
async def judge_findings(candidate: Candidate, task: TaskContext) -> Verdict:
    """First what needs no model, then what does."""
    findings, sources = Findings.model_validate(candidate.json()), Sources.model_validate(task.inputs)
    wrong = corpus.misquoted(sources.documents, findings.quotes)
    if wrong:
        return Verdict.failed(wrong)
    judgement = await ask(task, judge, {"question": task.goal, **findings.model_dump()})
    evidence = {"model": sources.model, "problems": judgement.problems}
    if judgement.passes:
        return Verdict.passed(evidence=evidence)
    return Verdict.failed(judgement.problems or ["the judge gave no reason"], evidence=evidence)


@verifier("check-report", version="1")
def check_report(candidate: Candidate, task: TaskContext) -> Verdict:
    """Every paragraph has a mark, every mark a quote, every quote a mark; it was verified before, and stands in its
    document."""
    report = Report.model_validate(candidate.json())
    verified = [quote for part in task.dependencies.values() for quote in Findings.model_validate(part.json()).quotes]
    wrong = corpus.misquoted(Sources.model_validate(task.inputs).documents, report.quotes)
    wrong += [f"no finding has the quote {quote.text!r}" for quote in report.quotes if quote not in verified]
    paragraphs = [part for part in report.text.split("\n\n") if part.strip()] if verified else []
    wrong += [f"no quote stands behind {part[:60]!r}" for part in paragraphs if not MARK.search(part)]
    marks = {int(mark) for mark in MARK.findall(report.text)}
    numbers = set(range(1, len(report.quotes) + 1))
    wrong += [f"there is no quote [{mark}]" for mark in sorted(marks - numbers)]
    wrong += [f"nothing in the text rests on quote [{number}]" for number in sorted(numbers - marks)]
    return Verdict.failed(wrong) if wrong else Verdict.passed(evidence={"quotes": len(report.quotes)})


def _page(question: str, report: Report) -> str:
    quotes = [f"{number}. “{quote.text}” — {quote.document}" for number, quote in enumerate(report.quotes, start=1)]
    return "\n\n".join([f"# {question}", report.text, "\n".join(quotes)]) + "\n"


if __name__ == "__main__":
    raise SystemExit("run it so: dagbok run examples/agent_research.py")
