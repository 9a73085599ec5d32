"""The import contracts of pyproject.toml catch what they forbid: each is shown one planted import and must name it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
LINT_IMPORTS = Path(sys.executable).with_name("lint-imports")
FOLDERS = ("agents", "events", "projections", "dagbok")


class Plant(NamedTuple):
    """A line added to a file (made if it is not there), and what the report must say about it."""

    file: str
    line: str
    contract: str
    named: str


UNDER_TYPE_CHECKING = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    "

PLANTS = {
    "an event knows a projection": Plant(
        "events/planted.py",
        "import dagbok.projections.task_graph.evolve",
        "Layers: events, projections, agents, then the root BROKEN",
        "dagbok.events.planted -> dagbok.projections.task_graph.evolve",
    ),
    "an event knows a projection, for type checking only": Plant(
        "events/planted.py",
        UNDER_TYPE_CHECKING + "from dagbok.projections.task_graph import evolve",
        "Layers: events, projections, agents, then the root BROKEN",
        "dagbok.events.planted -> dagbok.projections.task_graph.evolve",
    ),
    "a projection knows an actor": Plant(
        "projections/planted.py",
        "from dagbok.agents.scheduler import decide",
        "Layers: events, projections, agents, then the root BROKEN",
        "dagbok.projections.planted -> dagbok.agents.scheduler.decide",
    ),
    "an actor knows a module of the root": Plant(
        "agents/planted.py",
        "import dagbok.testing",
        "Layers: events, projections, agents, then the root BROKEN",
        "dagbok.agents.planted -> dagbok.testing",
    ),
    "an actor knows the public surface": Plant(
        "agents/planted.py",
        "from dagbok import Dagbok",
        "Nothing below the root imports the root BROKEN",
        "dagbok.agents.planted -> dagbok",
    ),
    "a new module of the root without a place": Plant(
        "dagbok/planted.py",
        "",
        "Layers: events, projections, agents, then the root BROKEN",
        "planted",
    ),
    "the core of the events knows a log": Plant(
        "events/planted.py",
        "from dagbok.events.log import memory",
        "Only hosting and wiring name a concrete log or store BROKEN",
        "dagbok.events.planted -> dagbok.events.log.memory",
    ),
    "the scheduler knows a log": Plant(
        "agents/scheduler/planted.py",
        "from dagbok.events.log.sqlite import SqliteLog",
        "Only hosting and wiring name a concrete log or store BROKEN",
        "dagbok.agents.scheduler.planted -> dagbok.events.log.sqlite",
    ),
    "a projection knows a store": Plant(
        "projections/planted.py",
        "import dagbok.projections.artifacts.local",
        "Only hosting and wiring name a concrete log or store BROKEN",
        "dagbok.projections.planted -> dagbok.projections.artifacts.local",
    ),
    "a fold reads the clock": Plant(
        "projections/task_graph/planted.py",
        "from time import time",
        "Deciders and folds: no clock, no random, no I/O, nothing asynchronous BROKEN",
        "dagbok.projections.task_graph.planted -> time",
    ),
    "a decider waits": Plant(
        "agents/scheduler/decide/planted.py",
        "import asyncio",
        "Deciders and folds: no clock, no random, no I/O, nothing asynchronous BROKEN",
        "dagbok.agents.scheduler.decide.planted -> asyncio",
    ),
    "an actor draws on the terminal": Plant(
        "agents/planted.py",
        "from rich.table import Table",
        "The terminal stays in the command line BROKEN",
        "dagbok.agents.planted -> rich",
    ),
    "an actor writes SQL": Plant(
        "agents/planted.py",
        "import sqlalchemy as sa",
        "SQL stays in the projections BROKEN",
        "dagbok.agents.planted -> sqlalchemy",
    ),
    "a worker traces by itself": Plant(
        "agents/planted.py",
        "from opentelemetry import trace",
        "OpenTelemetry stays in the tracing BROKEN",
        "dagbok.agents.planted -> opentelemetry",
    ),
    "the base of layers needs Pydantic AI": Plant(
        "agents/layers/planted.py",
        "import pydantic_ai",
        "Pydantic AI stays in its layers BROKEN",
        "dagbok.agents.layers.planted -> pydantic_ai",
    ),
    "the base of layers speaks to MCP servers": Plant(
        "agents/layers/planted.py",
        "import mcp",
        "MCP stays in its layer BROKEN",
        "dagbok.agents.layers.planted -> mcp",
    ),
    "the base of layers needs the OpenAI Agents SDK": Plant(
        "agents/layers/planted.py",
        "from agents import Runner",
        "The OpenAI Agents SDK stays in its layers BROKEN",
        "dagbok.agents.layers.planted -> agents",
    ),
    "a worker speaks to Kafka by itself": Plant(
        "agents/planted.py",
        "import faust",
        "Kafka stays in its log and its host BROKEN",
        "dagbok.agents.planted -> faust",
    ),
    "a projection speaks to S3 by itself": Plant(
        "projections/planted.py",
        "import obstore",
        "S3 stays in its adapter BROKEN",
        "dagbok.projections.planted -> obstore",
    ),
    "a projection knows the adapter of S3": Plant(
        "projections/planted.py",
        "from dagbok.projections.artifacts.s3 import blobs",
        "Only hosting and wiring name a concrete log or store BROKEN",
        "dagbok.projections.planted -> dagbok.projections.artifacts.s3.blobs",
    ),
    "two events know each other": Plant(
        "events/codes.py",
        UNDER_TYPE_CHECKING + "from dagbok.events.errors import DagbokError",
        "No cycles BROKEN",
        "errors",
    ),
}


def lint(tree: Path) -> tuple[int, str]:
    command = [str(LINT_IMPORTS), "--no-cache", "--no-logo"]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in FOLDERS:
        shutil.copytree(ROOT / name, tmp_path / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_tree_keeps_its_contracts(tree: Path) -> None:
    status, report = lint(tree)
    assert status == 0, report
    assert "0 broken" in report


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS.keys())
def test_a_forbidden_import_is_named(tree: Path, plant: Plant) -> None:
    with (tree / plant.file).open("a") as file:
        file.write(f"\n{plant.line}\n")
    status, report = lint(tree)
    assert status == 1
    assert plant.contract in report
    assert plant.named in report
