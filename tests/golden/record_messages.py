"""Records how messages of Pydantic AI are written with the version of it in this process:
`python -m tests.golden.record_messages`.

One file for each version, kept for ever. Only classes and fields that every version since 2.20 has.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pydantic_ai import messages as m
from pydantic_ai.usage import RequestUsage

from dagbok.agents.layers.pydantic_ai import PydanticAIHistoryLayer, PydanticAIHistoryState
from dagbok.agents.layers.pydantic_ai.messages import LIBRARY

FOLDER: Final = Path(__file__).parent
WHEN: Final = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
PAGE: Final = m.BinaryContent(bytes([0x89, 0xFF, 0xFE, 0x00]), media_type="application/pdf")


def golden_files() -> list[Path]:
    """The files that were recorded, of whichever version."""
    return sorted(FOLDER.glob("pydantic_ai_*.json"))


def state() -> PydanticAIHistoryState:
    """A conversation with all that a conversation usually has."""
    layer = PydanticAIHistoryLayer()
    layer.append_messages(_messages())
    return layer.runtime_state


def _messages() -> list[m.ModelMessage]:
    system = m.SystemPromptPart("be brief", timestamp=WHEN)
    asked = m.UserPromptPart(["what is this?", PAGE, m.ImageUrl("https://example.org/a.png")], timestamp=WHEN)
    call = m.ToolCallPart("look", {"at": None, "n": 0}, tool_call_id="c1")
    other = m.ToolCallPart("look", "{}", tool_call_id="c2", id="i", provider_name="openai")
    returned = m.ToolReturnPart("look", {"seen": [1, None, ""]}, tool_call_id="c1", timestamp=WHEN)
    denied = m.ToolReturnPart("look", "no", tool_call_id="c2", timestamp=WHEN, outcome="denied", metadata={"a": 0})
    native = m.NativeToolCallPart("web", {"q": "bees"}, tool_call_id="n1", provider_name="openai")
    found = m.NativeToolReturnPart("web", {"found": []}, tool_call_id="n1", timestamp=WHEN, provider_name="openai")
    usage = RequestUsage(input_tokens=12, output_tokens=7, details={"reasoning_tokens": 0})
    return [
        m.ModelRequest(parts=[system, asked], timestamp=WHEN, run_id="r1", instructions="be brief"),
        m.ModelResponse(parts=[m.ThinkingPart("hm", signature="s"), call, other], timestamp=WHEN, usage=usage),
        m.ModelRequest(parts=[returned, denied], timestamp=WHEN, run_id="r1", metadata={"k": []}),
        m.ModelResponse(parts=[native, found, m.FilePart(PAGE), m.TextPart("a page")], model_name="g", timestamp=WHEN),
    ]


if __name__ == "__main__":
    file = FOLDER / f"pydantic_ai_{LIBRARY}.json"
    file.write_text(state().model_dump_json(indent=1) + "\n")
