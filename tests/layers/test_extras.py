"""Layers for other libraries: the base does without these, and who lacks one is told which extra has it."""

from __future__ import annotations

import subprocess
import sys

import pytest

EXTRAS = {
    "pydantic_ai": ("pydantic_ai", "Pydantic AI; in a clone of dagbok: pip install '.[pydantic-ai]'"),
    "mcp": ("mcp", "the MCP SDK; in a clone of dagbok: pip install '.[mcp]'"),
    "openai_agents": ("agents", "the OpenAI Agents SDK; in a clone of dagbok: pip install '.[openai-agents]'"),
}


def test_the_base_of_layers_does_without_them() -> None:
    code = "import sys, dagbok.agents.layers, dagbok.agents.layers.durable; print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {module for module, _ in EXTRAS.values()} & set(told.stdout.split())


@pytest.mark.parametrize("name", EXTRAS)
def test_who_lacks_one_is_told_what_to_install(name: str) -> None:
    module, said = EXTRAS[name]
    code = f"import sys; sys.modules[{module!r}] = None; import dagbok.agents.layers.{name}"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = told.stderr.splitlines()[-1]
    assert last.startswith("ModuleNotFoundError: ")
    assert last.endswith((f"need {said}", f"needs {said}"))


def test_a_folder_called_like_a_library_is_not_taken_for_it() -> None:
    """The OpenAI Agents SDK is imported as `agents`, as is any folder of that name on the path."""
    code = (
        "import sys; from types import ModuleType; sys.modules['agents'] = ModuleType('agents');"
        "import dagbok.agents.layers.openai_agents"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert told.stderr.splitlines()[-1].endswith(EXTRAS["openai_agents"][1])
