"""How messages are written: what nobody set is left out, and all that was said is read again."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from pydantic import ValidationError
from pydantic_ai import messages as m

from dagbok.agents.layers.pydantic_ai import PydanticAIHistoryState
from tests.layers.messages import MESSAGES, REQUEST_PARTS, RESPONSE_PARTS, WHEN, classes_of


def written(*messages: m.ModelMessage) -> list[dict[str, object]]:
    return list(json.loads(PydanticAIHistoryState(messages=list(messages)).model_dump_json())["messages"])


def read(text: str) -> list[m.ModelMessage]:
    return PydanticAIHistoryState.model_validate_json(text).messages


def test_there_is_a_part_of_every_class() -> None:
    assert {type(part) for part in REQUEST_PARTS} == classes_of(m.ModelRequestPart)
    assert {type(part) for part in RESPONSE_PARTS} == classes_of(m.ModelResponsePart)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: f"{message.kind}-{len(message.parts)}")
def test_every_class_is_read_as_if_the_library_had_written_it(message: m.ModelMessage) -> None:
    (again,) = read(PydanticAIHistoryState(messages=[message]).model_dump_json())
    library = m.ModelMessagesTypeAdapter
    (expected,) = library.validate_json(library.dump_json([message]))
    assert again == expected
    assert [type(part) for part in again.parts] == [type(part) for part in message.parts]
    assert library.dump_json([again]) == library.dump_json([expected])


def test_what_nobody_set_is_not_written() -> None:
    said = m.ModelResponse(parts=[m.TextPart("hi"), m.ToolCallPart("look", {}, tool_call_id="c")], timestamp=WHEN)
    assert written(said) == [
        {
            "parts": [
                {"content": "hi", "part_kind": "text"},
                {"tool_name": "look", "args": {}, "tool_call_id": "c", "part_kind": "tool-call"},
            ],
            "usage": {},
            "timestamp": "2026-01-02T03:04:05.000678Z",
            "kind": "response",
            "state": "complete",
        }
    ]


def test_a_message_takes_less_than_half_of_what_the_library_writes() -> None:
    said = m.ModelResponse(parts=[m.TextPart("hi")], timestamp=WHEN, model_name="gpt", run_id="r")
    assert 2 * len(json.dumps(written(said))) < len(m.ModelMessagesTypeAdapter.dump_json([said]))


def test_what_a_tool_returned_is_written_whole() -> None:
    @dataclass
    class Seen:
        count: int = 0
        name: str | None = None

    returned = m.ToolReturnPart("look", [Seen(), {"of": Seen(), "none": None}], tool_call_id="c", timestamp=WHEN)
    (message,) = written(m.ModelRequest(parts=[returned]))
    empty = {"count": 0, "name": None}
    assert message["parts"][0]["content"] == [empty, {"of": empty, "none": None}]  # type: ignore[index]


def test_a_history_that_cannot_be_read_says_which_versions_of_the_library_are_at_odds() -> None:
    text = json.dumps({"messages": [{"kind": "request", "parts": [{"part_kind": "later"}]}], "library": "99.1"})
    with pytest.raises(ValidationError, match="later") as caught:
        read(text)
    assert caught.value.__notes__[0].startswith("The history was written with Pydantic AI 99.1, and this process has ")
    with pytest.raises(ValidationError) as caught:
        read("[")
    assert "of an unknown version" in caught.value.__notes__[0]
