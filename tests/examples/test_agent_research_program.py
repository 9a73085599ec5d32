"""The research example as a program: without a model, and killed in the middle."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from tests.examples.research_brain import PARTS, QUESTION, Brain, role_of
from tests.support.chat_stub import Asked, Reply, chat_stub

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "agent_research.py"
DOCUMENTS = ROOT / "examples" / "research_parts" / "documents"
FIRST, SECOND = PARTS
TIMEOUT_S = 60.0


def dagbok_run(folder: Path, *options: str) -> subprocess.Popen[str]:
    """`dagbok run` on the example."""
    return subprocess.Popen(
        [sys.executable, "-m", "dagbok", "run", str(EXAMPLE), "--json", "--data", str(folder), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> Any:
    """Its JSON, once it succeeded."""
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, err
    return json.loads(out)


def test_without_a_model_it_answers_with_quotes_that_stand_in_the_documents(tmp_path: Path) -> None:
    said = ended(dagbok_run(tmp_path / "data"))
    assert said["counts"] == {"verified": 4}
    paths = {artifact["name"]: Path(artifact["path"]) for artifact in said["artifacts"]}
    report = json.loads(paths["result"].read_text())
    assert len(report["quotes"]) >= 3
    for quote in report["quotes"]:
        assert quote["text"] in " ".join((DOCUMENTS / quote["document"]).read_text().split())
    page = paths["answer.md"].read_text()
    assert page.startswith("# How does a swarm choose its home?\n")
    assert {int(mark) for mark in re.findall(r"\[(\d+)\]", page)} == set(range(1, len(report["quotes"]) + 1))


def test_killed_in_the_middle_it_goes_on_without_asking_again_for_what_was_verified(tmp_path: Path) -> None:
    brain, judged, waiting = Brain(), threading.Event(), threading.Event()

    def answer(asked: Asked) -> Reply:
        """The second part hangs in its first life until the process is gone, the first one goes through."""
        role, part = role_of(asked), asked.prompt["question"]
        reply = brain(asked)
        if (role, part) == ("judge", FIRST):
            judged.set()
        if (role, part) == ("researcher", SECOND) and not gone.is_set():
            waiting.set()
            gone.wait(TIMEOUT_S)
        return reply

    gone = threading.Event()
    with chat_stub(answer) as stub:
        options = (QUESTION, "--model", "stub-1", "--base-url", stub.url)
        first = dagbok_run(tmp_path / "data", *options)
        try:
            assert judged.wait(TIMEOUT_S)
            assert waiting.wait(TIMEOUT_S)
            until_verified(tmp_path / "data", first)
        finally:
            first.send_signal(signal.SIGKILL)
            first.communicate()
        before = brain.answers.copy()
        gone.set()
        said = ended(dagbok_run(tmp_path / "data", *options))
    assert said["resumed"] is True
    assert said["counts"] == {"verified": 3}
    asked_again = brain.answers - before
    assert asked_again == {f"researcher: {SECOND}": 2, f"judge: {SECOND}": 1, "writer": 1}


def until_verified(folder: Path, process: subprocess.Popen[str]) -> None:
    """Follow the run until one part is verified."""
    followed = subprocess.Popen(
        [sys.executable, "-m", "dagbok", "events", "last", "--follow", "--json", "--data", str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert followed.stdout is not None
    try:
        for line in followed.stdout:
            if json.loads(line)["type"] == "TaskVerified":
                return
        raise AssertionError("the run ended")
    finally:
        followed.kill()
        followed.wait()
        followed.stdout.close()
