"""The research example with stand-ins, and with models behind an endpoint: a stub on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import agent_research
import pytest
from research_parts.corpus import DOCUMENTS

from dagbok import Limits
from dagbok.events.log.clock import system_ms
from dagbok.events.run.events import (
    AttemptFailed,
    CandidateSubmitted,
    DecompositionAccepted,
    TaskBackedOff,
    VerdictRecorded,
)
from tests.examples.research_brain import FINAL, PARTS, QUESTION, Brain, findings_for, quote_for, role_of
from tests.examples.researching import Ran, run_here
from tests.support.chat_stub import ANSWER_TOKENS, PROMPT_TOKENS, Asked, Call, ChatStub, Refuse, Say, chat_stub

FIRST, SECOND = PARTS
PER_ANSWER = PROMPT_TOKENS + ANSWER_TOKENS
INVENTED = "Bees vote by show of hands"
NOT_FOUND = {"document": "winter-cluster.md", "text": "Honey bees do not hibernate."}


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def brain() -> Brain:
    return Brain()


@pytest.fixture
def stub(brain: Brain) -> Iterator[ChatStub]:
    with chat_stub(brain) as running:
        yield running


async def research(folder: Path, stub: ChatStub) -> Ran:
    """One run against the stub."""
    return await run_here(folder, agent_research.main(QUESTION, model="openai:stub-1", base_url=stub.url))


def of_role(stub: ChatStub, role: str, part: str = "") -> list[Asked]:
    """What an agent was asked (on this part)."""
    return [asked for asked in stub.asked if role_of(asked) == role and (not part or asked.prompt["question"] == part)]


async def test_the_stand_in_is_careless_once_and_mends_what_it_is_told(tmp_path: Path) -> None:
    ran = await run_here(tmp_path, agent_research.main())
    assert ran.result.succeeded
    ((complaint,),) = ran.diagnostics()
    assert "word for word" in complaint


async def test_a_model_behind_an_endpoint_plans_searches_is_judged_and_writes(
    tmp_path: Path, brain: Brain, stub: ChatStub
) -> None:
    ran = await research(tmp_path, stub)
    assert ran.result.succeeded
    assert ran.result.json()["quotes"] == [quote_for(FIRST), quote_for(SECOND)]
    assert brain.answers == {
        "planner": 1,
        **{f"researcher: {part}": 2 for part in PARTS},
        **{f"judge: {part}": 1 for part in PARTS},
        "writer": 1,
    }
    assert {(asked.path, asked.model) for asked in stub.asked} == {("/v1/chat/completions", "stub-1")}
    searched = next(asked for asked in stub.asked if asked.returned)
    assert "A few hundred scouts" in searched.returned[0]
    assert set(searched.tools) == {"search", "read", FINAL}


async def test_tokens_are_counted_also_those_of_the_judge_and_of_attempts_that_fail(
    tmp_path: Path, brain: Brain, stub: ChatStub
) -> None:
    brain.say("researcher", Call("search", {"words": "scouts"}), Refuse(500), part=FIRST)
    ran = await research(tmp_path, stub)
    assert [event.usage.tokens for event in ran.of(DecompositionAccepted)] == [PER_ANSWER]
    assert [event.usage.tokens for event in ran.of(AttemptFailed, FIRST)] == [PER_ANSWER]
    assert [event.usage.tokens for event in ran.of(CandidateSubmitted, FIRST)] == [2 * PER_ANSWER]
    assert [event.usage.tokens for event in ran.of(VerdictRecorded, FIRST)] == [PER_ANSWER]


async def test_an_answer_of_the_wrong_shape_is_asked_for_again_within_the_attempt(
    tmp_path: Path, brain: Brain, stub: ChatStub
) -> None:
    brain.say("researcher", Call(FINAL, '{"answer": '), Call(FINAL, {"quotes": []}), part=FIRST)
    ran = await research(tmp_path, stub)
    assert ran.result.succeeded
    assert ran.of(AttemptFailed) == []
    assert len(ran.of(CandidateSubmitted, FIRST)) == 1


async def test_a_model_that_never_keeps_to_the_shape_spends_an_attempt(
    tmp_path: Path, brain: Brain, stub: ChatStub
) -> None:
    brain.say("planner", *[Say("Let me think about bees.")] * 3)
    ran = await research(tmp_path, stub)
    assert ran.result.succeeded
    (failed,) = ran.of(AttemptFailed)
    assert (failed.failure.failure, failed.failure.type) == ("retryable", "UnexpectedModelBehavior")


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_an_error_that_passes_becomes_a_backoff_and_is_in_the_log(
    tmp_path: Path, brain: Brain, stub: ChatStub, status: int
) -> None:
    brain.say("researcher", Refuse(status, "slow down"), part=FIRST)
    ran = await research(tmp_path, stub)
    assert ran.result.succeeded
    (failed,) = ran.of(AttemptFailed)
    assert failed.failure.failure == "retryable"
    assert str(status) in failed.failure.message
    assert "slow down" in failed.failure.message
    assert len(ran.of(TaskBackedOff, FIRST)) == 1
    assert brain.answers[f"researcher: {FIRST}"] == 3


async def test_nobody_is_asked_before_the_server_wants_to_be_asked_again(
    tmp_path: Path, brain: Brain, stub: ChatStub
) -> None:
    brain.say("researcher", Refuse(429, "slow down", retry_after="1"), part=FIRST)
    begun_ms = system_ms()
    ran = await research(tmp_path, stub)
    assert ran.result.succeeded
    (failed,) = ran.of(AttemptFailed)
    assert (failed.failure.type, failed.failure.failure) == ("Retry", "retryable")
    assert "slow down" in failed.failure.message
    (waits,) = ran.of(TaskBackedOff, FIRST)
    assert waits.due_ms >= begun_ms + 1_000 + Limits().backoff_base_ms // 2


async def test_an_error_of_the_judge_asks_the_judge_again_and_not_the_researcher(
    tmp_path: Path, brain: Brain, stub: ChatStub
) -> None:
    brain.say("judge", Refuse(500), part=FIRST)
    ran = await research(tmp_path, stub)
    assert ran.result.succeeded
    assert brain.answers[f"judge: {FIRST}"] == 2
    assert len(ran.of(CandidateSubmitted, FIRST)) == 1


async def test_a_wrong_key_fails_at_once(tmp_path: Path, brain: Brain, stub: ChatStub) -> None:
    brain.say("planner", Refuse(401, "wrong key"))
    ran = await research(tmp_path, stub)
    assert ran.result.status == "failed"
    (failed,) = ran.of(AttemptFailed)
    assert (failed.failure.failure, failed.failure.type) == ("terminal", "Terminal")
    assert len(stub.asked) == 1


async def test_without_a_key_and_an_endpoint_it_fails_with_the_words_that_help(tmp_path: Path) -> None:
    ran = await run_here(tmp_path, agent_research.main(model="gpt-x"))
    assert ran.result.status == "failed"
    (failed,) = ran.of(AttemptFailed)
    assert "OPENAI_API_KEY" in failed.failure.message


async def test_what_the_judge_says_reaches_the_next_attempt_which_mends_it(
    tmp_path: Path, brain: Brain, stub: ChatStub
) -> None:
    problem = "say who they are"
    brain.say("judge", Call(FINAL, {"passes": False, "problems": [problem]}), part=FIRST)
    ran = await research(tmp_path, stub)
    assert ran.result.succeeded
    assert ran.diagnostics() == [[problem]]
    told = [asked.prompt.get("problems_of_your_last_answer") for asked in of_role(stub, "researcher", FIRST)]
    assert told == [None, None, [problem], [problem]]


async def test_a_quote_may_run_over_the_end_of_a_line(tmp_path: Path, brain: Brain, stub: ChatStub) -> None:
    right = quote_for(SECOND)
    broken = right | {"text": right["text"].replace(" run ", " run\n")}
    assert broken["text"] in (DOCUMENTS / right["document"]).read_text()
    brain.say("researcher", Call(FINAL, findings_for(SECOND) | {"quotes": [broken]}), part=SECOND)
    ran = await research(tmp_path, stub)
    assert ran.result.json()["quotes"] == [quote_for(FIRST), right]
    assert ran.diagnostics() == []


async def test_a_wrong_quote_is_refused_before_any_judge_is_asked(tmp_path: Path, brain: Brain, stub: ChatStub) -> None:
    invented = findings_for(FIRST) | {"quotes": [{"document": "choosing-a-home.md", "text": INVENTED}]}
    brain.say("researcher", Call(FINAL, invented), part=FIRST)
    ran = await research(tmp_path, stub)
    assert ran.result.succeeded
    ((complaint,),) = ran.diagnostics(FIRST)
    assert INVENTED in complaint
    assert brain.answers[f"judge: {FIRST}"] == 1


@pytest.mark.parametrize(
    ("text", "quote", "complaint"),
    [
        ("So it is. [1]", quote_for(SECOND) | {"text": INVENTED}, "does not say"),
        ("So it is. [1]", NOT_FOUND, "no finding has the quote"),
        ("So it is. [1][2]", quote_for(FIRST), "there is no quote [2]"),
        ("So it is.", quote_for(FIRST), "nothing in the text rests on quote [1]"),
        ("So it is. [1]\n\nAnd bees can count.", quote_for(FIRST), "no quote stands behind 'And bees can count.'"),
    ],
    ids=["invented", "not verified", "mark without quote", "quote without mark", "bare paragraph"],
)
async def test_a_report_whose_quotes_do_not_hold_is_not_published(
    tmp_path: Path, brain: Brain, stub: ChatStub, text: str, quote: dict[str, str], complaint: str
) -> None:
    brain.say("writer", Call(FINAL, {"text": text, "quotes": [quote]}))
    ran = await research(tmp_path, stub)
    assert ran.result.succeeded
    assert ran.result.json()["quotes"] == [quote_for(FIRST), quote_for(SECOND)]
    assert any(complaint in wrong for wrong in ran.diagnostics()[0])
    assert ran.diagnostics()[0] == of_role(stub, "writer")[1].prompt["problems_of_your_last_answer"]
