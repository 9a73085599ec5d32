"""What docs/agents.md shows is run as it stands there, with a stub in the place of the model."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.chat_stub import Asked, Call, Reply, Say, chat_stub
from tests.support.lightagent_env import ROOT, lightagent_python

PAGE = ROOT / "docs" / "agents.md"
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FILES = ("summary.py", "write.py", "ask.py", "colour.py")


def program(name: str) -> str:
    """The block that says how it is run."""
    (found,) = [block for block in PYTHON.findall(PAGE.read_text()) if block.startswith(f"# dagbok run {name}")]
    return str(found)


def answer(asked: Asked) -> Reply:
    """Wrong at first: too long a sentence, no colour, until the model is told."""
    if "final_result" in asked.tools:
        told = "at most" in asked.user[0]
        return Call("final_result", {"sentence": "It rained thrice." if told else "It rained and rained, " * 9})
    told = "wrong_with_the_last_attempt" in asked.user[0]
    return Say('{"kind": "candidate", "content": "green"}' if told else "I like green.")


@pytest.mark.parametrize("name", FILES)
def test_each_way_to_bring_an_agent_runs_and_mends_its_first_answer(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(program(name))
    python = lightagent_python() if name == "colour.py" else Path(sys.executable)
    with chat_stub(answer) as stub:
        ran = subprocess.run(
            [python, "-m", "dagbok", "run", name, "--json", "--data", "data"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": stub.url},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert ran.returncode == 0, ran.stderr
    (artifact,) = json.loads(ran.stdout)["artifacts"]
    published = json.loads(Path(artifact["path"]).read_text())
    assert published == ({"sentence": "It rained thrice."} if name == "summary.py" else "green")
    assert len(stub.asked) == 2


def test_a_conversation_is_put_down_turn_by_turn(tmp_path: Path) -> None:
    (tmp_path / "converse.py").write_text(program("converse.py"))
    command = [sys.executable, "-m", "dagbok", "run", "converse.py", "--json", "--data", "data"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    (artifact,) = json.loads(ran.stdout)["artifacts"]
    assert json.loads(Path(artifact["path"]).read_text())[5] == "an answer to 'Who decides?' that knows 4 lines"


def beekeeper(asked: Asked) -> Reply:
    """Counts before it answers the first question."""
    return Say(f"question {len(asked.user)}") if asked.user[1:] or asked.returned else Call("count", {"what": "hives"})


def test_an_agent_of_layers_sends_what_was_said_before(tmp_path: Path) -> None:
    (tmp_path / "layered.py").write_text(program("layered.py"))
    command = [sys.executable, "-m", "dagbok", "run", "layered.py", "--json", "--data", "data"]
    with chat_stub(beekeeper) as stub:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": stub.url}
        ran = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
    assert ran.returncode == 0, ran.stderr
    (artifact,) = json.loads(ran.stdout)["artifacts"]
    assert json.loads(Path(artifact["path"]).read_text()) == ["question 1", "question 2"]
    assert stub.asked[-1].user == ["How many hives are there?", "And how many bees?"]


def test_the_tools_of_an_agent_show_the_run(tmp_path: Path) -> None:
    (source,) = [block for block in PYTHON.findall(PAGE.read_text()) if "run_tools(" in block]
    (tmp_path / "tools.py").write_text(source)
    ran = subprocess.run(
        [sys.executable, "tools.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    (run,) = json.loads(ran.stdout)["list_runs"]["runs"]
    assert (run["status"], run["tasks"]) == ("succeeded", {"verified": 1})


def test_every_program_of_the_page_is_run_here() -> None:
    shown = re.findall(r"^# dagbok run (\S+)", "\n".join(PYTHON.findall(PAGE.read_text())), re.MULTILINE)
    assert sorted(shown) == sorted((*FILES, "converse.py", "layered.py"))
