"""What a tool of an MCP server answered, as text for a model."""

from __future__ import annotations

import json

from mcp.types import (
    AudioContent,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)


def answer(result: CallToolResult, limit: int) -> str:
    """Texts of the answer, one behind the other, and a line for each thing that is no text; structured content where
    there is nothing else. At most `limit` characters, and how many more there are."""
    text = "\n".join(map(_shown, result.content))
    if not result.content and result.structured_content is not None:
        text = json.dumps(result.structured_content, ensure_ascii=False)
    if len(text) > limit:
        text = f"{text[:limit]}\n[{len(text) - limit} characters more]"
    return f"The tool failed: {text}" if result.is_error else text


def _shown(block: ContentBlock) -> str:
    match block:
        case TextContent():
            return block.text
        case EmbeddedResource(resource=TextResourceContents() as resource):
            return resource.text
        case ImageContent() | AudioContent():
            size = len(block.data.rstrip("=")) * 3 // 4  # it is base64
            return f"[{block.mime_type}, {size} bytes, not shown]"
        case ResourceLink():
            return f"[{block.name}: {block.uri}]"
        case _:
            return f"[{block.resource.uri}, no text, not shown]"
