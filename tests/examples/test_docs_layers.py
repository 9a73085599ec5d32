"""What docs/layers.md shows is run as it stands there: its blocks are files of one folder, its commands lines in it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from agents import set_tracing_disabled  # noqa: TID251 - the SDK is called so

from dagbok.agents.layers.mcp import MCPToolsConfig, MCPToolsLayer
from dagbok.testing import context
from tests.support.lightagent_env import ROOT
from tests.support.openai_agents_model import AnsweringModel
from tests.support.pages import files_of, in_a_shell, unnamed

PAGE = ROOT / "docs" / "layers.md"
FILES = files_of(PAGE)
RUN_HERE = {"agent.py", "interview.py", "my_layers.py", "servers.py", "told.py", "tomorrow.py"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Every file of the page."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def said(folder: Path, *lines: str) -> str:
    """What lines of a shell print, each of which succeeds."""
    ran = in_a_shell(folder, "set -e", *lines)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def names_of(file: str) -> dict[str, Any]:
    """What a file has at its top."""
    names: dict[str, Any] = {"__name__": file.removesuffix(".py")}
    exec(FILES[file], names)
    return names


def commands() -> list[str]:
    """The commands of the page, in order."""
    return re.findall(r"^    (dagbok .*)$", PAGE.read_text(), re.MULTILINE)


def test_every_block_is_a_file_and_every_program_of_the_page_is_run_here() -> None:
    assert unnamed(PAGE) == []
    assert {name for name in FILES if name.endswith(".py")} == RUN_HERE


def test_a_session_goes_on_and_goes_on_in_another_graph(folder: Path) -> None:
    lines = said(folder, "python agent.py", "python agent.py").splitlines()
    assert lines == [
        "['Be brief.']", "noted in box-1", "['buy ink']",
        "['Be brief.', 'Noted: buy ink']", "noted in box-1", "['buy ink', 'buy ink']",
    ]  # fmt: skip
    assert len(commands()) == 5
    told = said(folder, *commands())
    assert "can be resumed" in told
    assert told.count("3 layers, nothing wrong") == 2
    tomorrow = said(folder, "python tomorrow.py").splitlines()
    assert tomorrow[-2:] == ["deleted box-1", "[['buy ink', 'buy ink']]"]


def test_a_layered_worker_puts_down_turn_by_turn(folder: Path) -> None:
    said(folder, "dagbok run interview.py")
    session = json.loads(said(folder, "dagbok session show last interview --json"))
    assert len(session["value"]["layers"]["history"]["state"]["turns"]) == 3


def test_the_servers_that_are_shown_are_taken() -> None:
    names = names_of("servers.py")
    nodes = {node.name: node.provider for node in names["compositor"].nodes}
    assert {provider.layer_type for provider in nodes.values()} == {MCPToolsLayer}
    checked = [nodes[name].validate_config(config) for name, config in names["configs"].items()]
    assert [type(config) for config in checked] == [MCPToolsConfig, MCPToolsConfig]


async def test_the_loop_that_is_shown_keeps_its_session() -> None:
    set_tracing_disabled(True)
    names = names_of("told.py")
    names["MODEL"] = AnsweringModel(lambda asked: f"{asked.instructions} {len(asked.said)}")
    work = names["answerer"].function
    task = context()
    await work(task)
    outcome = await work(context(session=task.session.load()))
    assert outcome.artifacts["result"].content == "Be brief. 2"
