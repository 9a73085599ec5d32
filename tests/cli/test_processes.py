"""Signals, kills, and two processes on one folder: real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from dagbok.cli.module_file import pool_of
from tests.cli.conftest import Call
from tests.cli.programs import LIMIT_S, Program, begin, eventually

COUNT = 6


@pytest.fixture
def started(program: Program) -> Iterator[subprocess.Popen[str]]:
    """A run whose first two parts are verified, and whose others wait for the gate."""
    with begin(*program.command("--how", "gate", "--count", str(COUNT))) as process:
        eventually(lambda: len(program.calls()) == 4)
        yield process
        process.kill()


def finish(call: Call, program: Program) -> None:
    """The same command ends the same run, and what was verified is not done again."""
    program.open_gate()
    said = call(*program.command("--how", "gate", "--count", str(COUNT), "--json"))
    assert said.status == 0
    assert said.json["resumed"]
    assert len(call(*program.look("ls", "--json")).json) == 1
    calls = Counter(program.calls())
    assert (calls["part-00"], calls["part-01"]) == (1, 1)
    assert calls["part-05"] == 1


def test_after_ctrl_c_the_same_command_goes_on(started: subprocess.Popen[str], call: Call, program: Program) -> None:
    started.send_signal(signal.SIGINT)
    _, err = started.communicate(timeout=LIMIT_S)
    assert started.returncode == 130
    assert err.splitlines()[-1] == "interrupted: the same command goes on where it was"
    assert "Traceback" not in err
    attempts = call(*program.look("show", "last", "--json")).json["attempts"]
    assert Counter(attempt["status"] for attempt in attempts if attempt["kind"] == "work")["released"] == 2
    finish(call, program)


def test_after_kill_9_the_same_command_goes_on(started: subprocess.Popen[str], call: Call, program: Program) -> None:
    started.kill()
    started.communicate(timeout=LIMIT_S)
    finish(call, program)


def test_the_same_command_in_a_second_terminal_joins_and_goes_on_when_the_first_is_killed(
    started: subprocess.Popen[str], call: Call, program: Program
) -> None:
    with begin(*program.command("--how", "gate", "--count", str(COUNT), "--json")) as second:
        eventually(lambda: len(program.calls()) == COUNT)  # two in each terminal
        started.kill()
        started.communicate(timeout=LIMIT_S)
        program.open_gate()
        out, _ = second.communicate(timeout=LIMIT_S)
    assert second.returncode == 0
    told = json.loads(out)
    assert (told["status"], told["resumed"]) == ("succeeded", True)
    calls = Counter(program.calls())
    assert [calls[f"part-{number:02}"] for number in (0, 1)] == [1, 1]
    assert len(call(*program.look("ls", "--json")).json) == 1


def test_a_run_is_steered_and_followed_while_its_owner_lives(
    started: subprocess.Popen[str], call: Call, program: Program
) -> None:
    with begin(*program.look("events", "last", "--follow", "--json")) as follower:
        assert follower.stdout is not None
        assert json.loads(follower.stdout.readline())["type"] == "RunStarted"
        assert call(*program.look("pause", "last")).status == 0
        assert call(*program.look("ls", "--json")).json[0]["status"] == "paused"
        assert call(*program.look("resume", "last")).status == 0
        program.open_gate()
        out, _ = started.communicate(timeout=LIMIT_S)
        assert started.returncode == 0
        assert out.splitlines()[-1].startswith("succeeded: ")
        types = [json.loads(line)["type"] for line in follower.stdout]
        assert follower.wait(timeout=LIMIT_S) == 0
        assert types[-1] == "RunSucceeded"
        assert types.index("RunPaused") < types.index("RunResumed")


def test_up_goes_on_with_open_runs_until_sigterm(started: subprocess.Popen[str], call: Call, program: Program) -> None:
    started.kill()
    started.communicate(timeout=LIMIT_S)
    with begin(*program.look("up", "--import", str(program.file))) as up:
        assert up.stderr is not None
        lines = (json.loads(line) for line in up.stderr)
        serving = next(line for line in lines if line["event"] == "up.serving")
        assert serving["pools"] == ["default", pool_of(program.file)]
        assert serving["pid"] == up.pid
        program.open_gate()
        assert next(line for line in lines if line["event"] == "RunSucceeded")["tenant"] == "local"
        up.send_signal(signal.SIGTERM)
        assert [line["event"] for line in lines][-1] == "up.stopped"
        assert up.wait(timeout=LIMIT_S) == 0
    assert call(*program.look("show", "last")).out.startswith("run ")


def test_whoever_closes_the_pipe_ends_the_command_quietly(three_runs: Program) -> None:
    read, write = os.pipe()
    os.close(read)
    with begin(*three_runs.look("events", "last"), stdout=write) as process:
        os.close(write)
        _, err = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, err) == (141, "")


CLOSES_ALL = '''
import os
from dagbok import Outcome, TaskSpec, verifier, worker

@worker("tidy")
def tidy(task):
    if not os.path.exists("closed"):
        open("closed", "x").close()
        os.closerange(3, 256)
    return Outcome.candidate("tidy")

@verifier("any", version="1")
def anything(candidate, task):
    return True

def main():
    return TaskSpec(goal="tidy up", worker="tidy", verifier="any")
'''


def test_a_worker_that_closes_the_files_of_its_process_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flow.py").write_text(CLOSES_ALL)
    with begin("run", "flow.py", "--data", "data") as process:
        _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 70
    assert "closed behind its back" in err.splitlines()[-1]
    assert "Traceback" not in err
    assert call("run", "flow.py", "--data", "data", "--json").json["status"] == "succeeded"


def test_two_files_with_equal_names_do_not_mix(tmp_path: Path) -> None:
    assert pool_of(tmp_path / "a" / "flow.py") != pool_of(tmp_path / "b" / "flow.py")
    assert pool_of(tmp_path / "a" / "flow.py").startswith("flow-")
