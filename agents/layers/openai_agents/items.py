"""Items of the Responses API: where an exchange begins, and calls that nobody answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import JsonValue

from dagbok.agents.layers.interrupted import INTERRUPTED

Item = dict[str, JsonValue]

_NOT_OVER: Final[JsonValue] = [{"stdout": "", "stderr": INTERRUPTED, "outcome": {"type": "timeout"}}]
_OUTPUTS: Final[Mapping[str, Item]] = {
    "function_call": {"type": "function_call_output", "output": INTERRUPTED},
    "custom_tool_call": {"type": "custom_tool_call_output", "output": INTERRUPTED},
    "local_shell_call": {"type": "local_shell_call_output", "output": INTERRUPTED},
    "shell_call": {"type": "shell_call_output", "status": "incomplete", "output": _NOT_OVER},
    "apply_patch_call": {"type": "apply_patch_call_output", "status": "failed", "output": INTERRUPTED},
    "tool_search_call": {"type": "tool_search_output", "execution": "client", "status": "incomplete", "tools": []},
}
"""Calls that a program answers, and what answers one that was stopped."""
_ANSWERS: Final = frozenset({"computer_call_output", *(each["type"] for each in _OUTPUTS.values())})


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
    """The items with each open call answered, right behind the calls that it was made with. A computer is answered for
    with a picture of it, which nobody has: such a call, and the reasoning that led to it, gives way to a message."""
    answered = {item.get("call_id") or item.get("id") for item in items if item.get("type") in _ANSWERS}
    found: list[Item] = []
    closing: list[Item] = []
    for item in items:
        kind = item.get("type")
        is_open = _is_answered_here(item) and item.get("call_id") not in answered
        if not _is_answered_here(item) and closing:
            found += closing
            closing = []
        if kind == "computer_call" and is_open:
            while found and found[-1].get("type") == "reasoning":
                found.pop()
            closing.append({"role": "developer", "content": f"computer {INTERRUPTED}"})
            continue
        found.append(item)
        if is_open:
            closing.append(_answer(item))
    return found + closing


def _is_answered_here(item: Item) -> bool:
    """Some tools may also be the provider's own, which it answers itself."""
    kind, place = item.get("type"), item.get("environment")
    if kind == "tool_search_call":
        return item.get("execution") == "client"
    if kind == "shell_call" and isinstance(place, dict):
        return place.get("type") == "local"
    return kind == "computer_call" or kind in _OUTPUTS


def _answer(call: Item) -> Item:
    caller = {"caller": call["caller"]} if call.get("caller") is not None else {}
    return {**_OUTPUTS[str(call["type"])], "call_id": call.get("call_id"), **caller}
