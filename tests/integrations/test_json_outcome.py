"""Outcomes as agents write them: what is read, and what is refused with the words that help the agent."""

from __future__ import annotations

import json

import pytest

from dagbok import Code, Outcome, TaskSpec
from dagbok.agents.integrations.json_outcome import OUTCOME_FORM, NotAnOutcome, parse_outcome

CHILD = {"goal": "g", "worker": "w", "verifier": "v"}

READ = {
    "candidate": ({"kind": "candidate", "content": {"a": [1, None]}}, Outcome.candidate({"a": [1, None]})),
    "candidate of null": ({"kind": "candidate", "content": None}, Outcome.candidate(None)),
    "candidate with more": (
        {"kind": "candidate", "content": "# Hi", "media_type": "text/markdown", "outputs": {"n": 1}},
        Outcome.candidate("# Hi", media_type="text/markdown", outputs={"n": 1}),
    ),
    "decomposition": (
        {"kind": "decompose", "tasks": [{**CHILD, "id": "a"}, {**CHILD, "depends_on": ["a"]}], "rationale": "r"},
        Outcome.decompose(
            [TaskSpec.model_validate({**CHILD, "id": "a"}), TaskSpec.model_validate({**CHILD, "depends_on": ["a"]})],
            rationale="r",
        ),
    ),
    "decomposition with more": (
        {"kind": "decompose", "tasks": [CHILD], "reuse": ["b"], "composition_contract": [1]},
        Outcome.decompose([TaskSpec.model_validate(CHILD)], reuse=["b"], composition_contract=[1]),
    ),
    "blocked": ({"kind": "blocked", "reason": "no key"}, Outcome.blocked("no key")),
}

REFUSED = {
    "free text": ("All done!", "free text is not an outcome: 'All done!'"),
    "nothing": ("", "free text is not an outcome"),
    "text around it": ('Here: {"kind": "blocked", "reason": "x"}', "free text is not an outcome"),
    "two fences": ('```\n{"kind": "blocked", "reason": "x"}\n```\nor\n```\n{}\n```', "free text is not an outcome"),
    "a list": ("[]", "not an outcome"),
    "no kind": ('{"content": 1}', "not an outcome"),
    "another kind": ('{"kind": "done", "content": 1}', "'candidate', 'decompose', 'blocked'"),
    "no content": ('{"kind": "candidate"}', "content: Field required"),
    "an unknown name": ('{"kind": "candidate", "content": 1, "note": "x"}', "note: Extra inputs are not permitted"),
    "no tasks": ('{"kind": "decompose", "tasks": []}', "tasks: Tuple should have at least 1 item"),
    "half a task": ('{"kind": "decompose", "tasks": [{"goal": "g"}]}', "tasks.0.worker: Field required"),
    "no reason": ('{"kind": "blocked", "reason": " "}', "reason: String should match"),
    "a number that no log keeps": ('{"kind": "candidate", "content": 123456789012345678901}', "64 bits"),
    "one in the inputs of a task": (
        json.dumps({"kind": "decompose", "tasks": [{**CHILD, "inputs": 10**30}]}),
        "64 bits",
    ),
}


@pytest.mark.parametrize("fence", ["{}", "```json\n{}\n```", "```\n{}\n```\n"], ids=["bare", "json fence", "fence"])
@pytest.mark.parametrize(("said", "outcome"), READ.values(), ids=READ.keys())
def test_an_object_of_the_form_is_an_outcome(said: object, outcome: Outcome, fence: str) -> None:
    assert parse_outcome(fence.replace("{}", json.dumps(said))) == outcome


@pytest.mark.parametrize(("said", "complaint"), REFUSED.values(), ids=REFUSED.keys())
def test_anything_else_is_refused_with_what_is_wrong_and_the_form(said: str, complaint: str) -> None:
    with pytest.raises(NotAnOutcome) as refused:
        parse_outcome(said)
    assert complaint in refused.value.message
    assert OUTCOME_FORM in refused.value.message
    assert refused.value.code is Code.INVALID_OUTCOME
    assert refused.value.retry, "an agent that is told the form may keep to it"


def test_a_long_answer_is_not_repeated_to_the_agent() -> None:
    with pytest.raises(NotAnOutcome) as refused:
        parse_outcome("word " * 10_000)
    assert len(refused.value.message) < 1_500


def test_the_form_that_agents_are_told_is_read() -> None:
    lines = [line for line in OUTCOME_FORM.splitlines() if line.startswith("{")]
    told = [line.replace("<the result, any JSON value>", "1").replace("<any JSON value>", "1") for line in lines]
    spoken = [text.replace(", …]", "]").replace('"id": "…"', '"id": "a"').replace('["…"]', '["b"]') for text in told]
    assert [parse_outcome(text).kind for text in spoken] == ["candidate", "decompose", "blocked"]
