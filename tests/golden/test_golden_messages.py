"""Conversations that were written with older versions of Pydantic AI are read, and nothing in them is called otherwise.

A new version of the library that renames or drops a field fails here, before a session meets it. `record_messages`
records the file of a version.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dagbok.agents.layers.pydantic_ai import PydanticAIHistoryState
from dagbok.agents.layers.pydantic_ai.messages import LIBRARY
from tests.golden.record_messages import FOLDER, golden_files, state

ADDED = {"scope", "content_file_digests"}
"""What versions after 2.20 add to messages that do not need it."""


def test_there_is_a_file_of_the_oldest_version_and_of_the_one_that_is_installed() -> None:
    names = {file.name for file in golden_files()}
    assert {"pydantic_ai_2.20.0.json", f"pydantic_ai_{LIBRARY}.json"} <= names, "python -m tests.golden.record_messages"


@pytest.mark.parametrize("file", golden_files(), ids=lambda file: file.stem)
def test_it_is_read_as_the_conversation_that_it_was(file: Path) -> None:
    assert PydanticAIHistoryState.model_validate_json(file.read_text()).messages == state().messages


@pytest.mark.parametrize("file", golden_files(), ids=lambda file: file.stem)
def test_both_versions_write_the_same_of_it(file: Path) -> None:
    written = json.loads(state().model_dump_json())["messages"]
    assert _without(written, ADDED) == _without(json.loads(file.read_text())["messages"], ADDED)


def test_what_this_version_writes_is_what_was_recorded() -> None:
    recorded = (FOLDER / f"pydantic_ai_{LIBRARY}.json").read_text()
    assert json.loads(state().model_dump_json()) == json.loads(recorded)


def _without(value: object, names: set[str]) -> object:
    if isinstance(value, dict):
        return {name: _without(each, names) for name, each in value.items() if name not in names}
    return [_without(each, names) for each in value] if isinstance(value, list) else value
