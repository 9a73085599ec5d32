"""Items of the Responses API: where an exchange begins, and calls that nobody answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import JsonValue

from dagbok.agents.layers.interrupted import INTERRUPTED

Item = dict[str, JsonValue]

OUTPUTS: Final[Mapping[str, Item]] = {
    "function_call": {"type": "function_call_output", "output": INTERRUPTED},
    "custom_tool_call": {"type": "custom_tool_call_output", "output": INTERRUPTED},
    "local_shell_call": {"type": "local_shell_call_output", "output": INTERRUPTED},
    "shell_call": {
        "type": "shell_call_output",
        "output": [{"stdout": "", "stderr": INTERRUPTED, "outcome": {"type": "timeout"}}],
        "status": "incomplete",
    },
    "apply_patch_call": {"type": "apply_patch_call_output", "output": INTERRUPTED, "status": "failed"},
}
"""Calls that a program answers, and what it says of one that was stopped. A call of a computer is answered with a
picture, which nobody has."""
ANSWERS: Final = frozenset(each["type"] for each in OUTPUTS.values())


def turn_start(items: Sequence[Item], at_most: int) -> int:
    """Where the newest whole exchanges begin that are `at_most` items together; the last one is taken in any case."""
    if at_most <= 0:
        return len(items)
    start = len(items)
    for index in range(len(items) - 1, -1, -1):
        if len(items) - index > at_most and start < len(items):
            return start
        if items[index].get("role") == "user":
            start = index
    return start if len(items) > at_most and start < len(items) else 0


def closed(items: Sequence[Item]) -> list[Item]:
    """The items with each open call answered, right behind the calls that it was made with."""
    answered = {item.get("call_id") for item in items if item.get("type") in ANSWERS}
    found: list[Item] = []
    closing: list[Item] = []
    for item in items:
        kind = item.get("type")
        if kind not in OUTPUTS and closing:
            found += closing
            closing = []
        found.append(item)
        if kind in OUTPUTS and item.get("call_id") not in answered:
            closing.append({**OUTPUTS[str(kind)], "call_id": item.get("call_id")})
    return found + closing
