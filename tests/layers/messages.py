"""A message part of every class that Pydantic AI has, and content of every class for prompts."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, get_args

from pydantic_ai import messages as m
from pydantic_ai.usage import RequestUsage

WHEN = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
BYTES = bytes([0x89, 0xFF, 0xFE, 0x00])
CONTENT: list[m.UserContent] = [
    "text",
    m.TextContent("text", metadata={"a": None, "b": 0}),
    m.ImageUrl("https://example.org/a.png", identifier="one"),
    m.AudioUrl("https://example.org/a.mp3", force_download=True),
    m.DocumentUrl("https://example.org/a", media_type="application/pdf"),
    m.VideoUrl("https://example.org/a.mp4", vendor_metadata={}),
    m.BinaryContent(BYTES, media_type="application/pdf", vendor_metadata={"fps": 0}),
    m.BinaryContent(BYTES, media_type="image/png"),
    m.UploadedFile("f1", "openai", media_type="text/plain"),
    m.CachePoint(),
    m.CachePoint(ttl="1h"),
    m.StructuredContent({"a": None, "b": [0, ""]}, tag="data"),
]
REQUEST_PARTS: list[m.ModelRequestPart] = [
    m.SystemPromptPart("be brief", timestamp=WHEN),
    m.SystemPromptPart("", timestamp=WHEN, dynamic_ref="now", scope="request", metadata={"a": None}),
    m.UserPromptPart("hello", timestamp=WHEN),
    m.UserPromptPart(CONTENT, timestamp=WHEN),
    m.SpeechPart(speaker="user", transcript="hi", interrupted_at_ms=0),
    m.ToolReturnPart("look", {"seen": [1, None, {}], "not": None}, tool_call_id="c1", timestamp=WHEN),
    m.ToolReturnPart("look", None, tool_call_id="c2", timestamp=WHEN, outcome="denied", metadata={"a": 0}),
    m.ToolReturnPart("look", "", tool_call_id="c3", timestamp=WHEN, metadata=0),
    m.ToolReturnPart("look", ["a", *CONTENT[2:9]], tool_call_id="c4", timestamp=WHEN),
    m.ToolSearchReturnPart(content={"discovered_tools": [{"name": "look"}]}, tool_call_id="c5", timestamp=WHEN),
    m.LoadCapabilityReturnPart(content={"message": ""}, tool_call_id="c6", timestamp=WHEN),
    m.RetryFeedbackPart("again", retry=m.RetryInfo("no_output", attempt=0), timestamp=WHEN),
    m.ToolAvailabilityDeltaPart(tools_added=[]),
    m.CapabilityLoadDeltaPart(loaded=["a"]),
    m.ModelSettingsDeltaPart(settings={}),
    m.InstructionDeltaPart(id=None, content=""),
    m.InstructionBaselinePart(instructions=[m.InstructionPart("be kind"), m.InstructionDigest(content_hash="x")]),
    m.CompactionPart("what was said"),
]
RESPONSE_PARTS: list[m.ModelResponsePart] = [
    m.TextPart("hello", provider_details={}),
    m.TextPart("", id="i", citations=[m.Citation([m.WebCitationSource("https://example.org")])]),
    m.ToolCallPart("look", {"at": None, "n": 0}, tool_call_id="c1"),
    m.ToolCallPart("look", "{}", tool_call_id="c2"),
    m.ToolCallPart("look", {}, tool_call_id="c3"),
    m.ToolCallPart("look", None, tool_call_id="c4"),
    m.ToolSearchCallPart(args={"queries": ["a"]}, tool_call_id="c5"),
    m.LoadCapabilityCallPart(args={"id": "a"}, tool_call_id="c6"),
    m.NativeToolCallPart("web", {"q": ""}, tool_call_id="n1", provider_name="openai"),
    m.NativeToolSearchCallPart(args={"queries": []}, tool_call_id="n2"),
    m.NativeToolSearchReturnPart(content={"discovered_tools": []}, tool_call_id="n2", timestamp=WHEN),
    m.NativeToolReturnPart("web", {"found": []}, tool_call_id="n1", timestamp=WHEN),
    m.ThinkingPart("hm", signature="s"),
    m.CompactionPart(id="c", provider_name="openai"),
    m.FilePart(m.BinaryImage(BYTES, media_type="image/png")),
    m.SpeechPart(speaker="assistant", timestamps=[m.SpeechTimestamp(text="a", start_ms=0, duration_ms=0)]),
]
MESSAGES: list[m.ModelMessage] = [
    m.ModelRequest(parts=REQUEST_PARTS, timestamp=WHEN),
    m.ModelRequest(parts=[], run_id="r", metadata={}, state="interrupted"),
    m.ModelResponse(parts=RESPONSE_PARTS, timestamp=WHEN),
    m.ModelResponse(
        parts=[],
        usage=RequestUsage(input_tokens=0, output_tokens=7, details={"a": 0}),
        model_name="gpt",
        timestamp=WHEN,
        provider_details={"a": None},
        finish_reason="stop",
        metadata={"b": []},
        state="suspended",
    ),
]


def classes_of(union: Any) -> set[type]:
    """The classes in a union of annotated classes, those that are only read as another one left out."""
    found = {get_args(each)[0] for each in get_args(get_args(union)[0])}
    return {each for each in found if isinstance(each, type)} - {m.RetryPromptPart}
