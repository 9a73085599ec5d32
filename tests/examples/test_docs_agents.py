"""What docs/agents.md shows is run as it stands there: offline, and with a stub in the place of the model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.chat_stub import Asked, Call, Reply, Say, chat_stub
from tests.support.lightagent_env import ROOT, lightagent_python
from tests.support.pages import files_of, in_a_shell, unnamed

PAGE = ROOT / "docs" / "agents.md"
FILES = files_of(PAGE)
SINGLE = ("summary.py", "write.py", "ask.py", "colour.py")
"""Each asks a model once an attempt."""
OFFLINE = {
    "summary.py": {"sentence": "a"},
    "write.py": "green",
    "ask.py": "green",
    "converse.py": [
        "What is a swarm?", "an answer to 'What is a swarm?' that knows 0 lines",
        "How does it choose its home?", "an answer to 'How does it choose its home?' that knows 2 lines",
        "Who decides?", "an answer to 'Who decides?' that knows 4 lines",
    ],
    "layered.py": ['{"count":0}', '{"count":0}'],
}  # fmt: skip
"""What each publishes that needs no key."""


def published(run: subprocess.CompletedProcess[str]) -> Any:
    """By a `dagbok run … --json`."""
    assert run.returncode == 0, run.stderr
    (artifact,) = json.loads(run.stdout)["artifacts"]
    return json.loads(Path(artifact["path"]).read_text())


def run(folder: Path, name: str, python: Path = Path(sys.executable), **environment: str) -> Any:
    """What a program of the page publishes."""
    (folder / name).write_text(FILES[name])
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("DAGBOK_", "OPENAI_", "MODEL"))}
    return published(
        subprocess.run(
            [python, "-m", "dagbok", "run", name, "--json", "--data", "data"],
            cwd=folder,
            env=kept | {"PYTHONPATH": str(ROOT)} | environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", OFFLINE)
def test_a_program_runs_without_a_key(tmp_path: Path, name: str) -> None:
    assert run(tmp_path, name) == OFFLINE[name]


def answer(asked: Asked) -> Reply:
    """Wrong at first: too long a sentence, no colour, until the model is told."""
    if "final_result" in asked.tools:
        told = "at most" in asked.user[0]
        return Call("final_result", {"sentence": "It rained thrice." if told else "It rained and rained, " * 9})
    told = "wrong_with_the_last_attempt" in asked.user[0]
    return Say('{"kind": "candidate", "content": "green"}' if told else "I like green.")


@pytest.mark.parametrize("name", SINGLE)
def test_each_way_to_bring_an_agent_runs_and_mends_its_first_answer(tmp_path: Path, name: str) -> None:
    python = lightagent_python() if name == "colour.py" else Path(sys.executable)
    model = "openai-chat:gpt-5-mini" if name == "summary.py" else "gpt-5-mini"
    with chat_stub(answer) as stub:
        told = run(tmp_path, name, python, MODEL=model, OPENAI_API_KEY="none", OPENAI_BASE_URL=stub.url)
    assert told == ({"sentence": "It rained thrice."} if name == "summary.py" else "green")
    assert len(stub.asked) == 2


def beekeeper(asked: Asked) -> Reply:
    """Counts before it answers the first question."""
    return Say(f"question {len(asked.user)}") if asked.user[1:] or asked.returned else Call("count", {"what": "hives"})


def test_an_agent_of_layers_sends_what_was_said_before(tmp_path: Path) -> None:
    with chat_stub(beekeeper) as stub:
        model = "openai-chat:gpt-5-mini"
        told = run(tmp_path, "layered.py", MODEL=model, OPENAI_API_KEY="none", OPENAI_BASE_URL=stub.url)
    assert told == ["question 1", "question 2"]
    assert stub.asked[-1].user == ["How many hives are there?", "And how many bees?"]


def test_the_tools_of_an_agent_show_the_run(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(FILES["tools.py"])
    ran = in_a_shell(tmp_path, "python tools.py")
    assert ran.returncode == 0, ran.stderr
    (found,) = json.loads(ran.stdout)["list_runs"]["runs"]
    assert (found["status"], found["tasks"]) == ("succeeded", {"verified": 1})


def test_every_program_of_the_page_is_run_here() -> None:
    assert unnamed(PAGE) == []
    assert set(FILES) == {*OFFLINE, *SINGLE, "tools.py"}
