"""A text in every form in which Pydantic AI takes a prompt."""

from __future__ import annotations


class PromptText(str):
    """A text that is also a prompt function: for `Agent(instructions=…)`, `Agent(system_prompt=…)` and
    `agent.system_prompt(…)`."""

    __slots__ = ()

    def __call__(self) -> str:
        """The text."""
        return str(self)
