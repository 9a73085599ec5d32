"""`dagbok submit FILE`: the run that `dagbok run` would start, without its work; and commands that mend a run."""

from __future__ import annotations

import json
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from dagbok.cli.module_file import pool_of
from tests.cli.conftest import Call
from tests.cli.programs import LIMIT_S, Program, begin, eventually


def submitted(call: Call, program: Program, *options: str) -> str:
    """The id of a run that was submitted."""
    said = call("submit", *program.command(*options)[1:])
    assert said.status == 0
    return said.out.strip()


@pytest.fixture
def serving(program: Program) -> Iterator[subprocess.Popen[str]]:
    """`dagbok up` on the folder of the program; ended at last."""
    with begin(*program.look("up", "--import", str(program.file))) as up:
        try:
            assert up.stderr is not None
            assert next(line for line in up.stderr if "up.serving" in line)
            yield up
            up.terminate()
            assert up.wait(timeout=LIMIT_S) == 0
        finally:
            up.kill()


def test_it_prints_the_id_works_on_nothing_and_says_who_would(call: Call, program: Program) -> None:
    said = call("submit", *program.command()[1:])
    assert said.status == 0
    assert program.calls() == []
    (run,) = call(*program.look("ls", "--json")).json
    assert said.out == run["run"] + "\n"
    assert f"dagbok up --import FILE --data {program.data} goes on" in said.err
    serve = f"dagbok up --import {program.file} --data {program.data}"
    assert f"nobody serves the pool {pool_of(program.file)}: {serve}\n" in said.err
    again = call("submit", *program.command("--json")[1:]).json
    assert again == {"run": run["run"], "resumed": True}


def test_run_goes_on_with_what_was_submitted(call: Call, program: Program) -> None:
    run = submitted(call, program)
    told = call(*program.command("--json")).json
    assert (told["run"], told["resumed"], told["status"]) == (run, True, "succeeded")
    assert submitted(call, program) != run


def test_whoever_serves_the_folder_does_the_work_and_several_share_it(
    serving: subprocess.Popen[str], call: Call, program: Program
) -> None:
    with begin(*program.look("up", "--import", str(program.file))) as other:
        try:
            assert other.stderr is not None
            assert next(line for line in other.stderr if "up.serving" in line)
            said = call("submit", *program.command("--count", "12")[1:])
            assert said.err == ""
            run = said.out.strip()
            with begin(*program.look("events", run, "--follow", "--json")) as follower:
                out, _ = follower.communicate(timeout=LIMIT_S)
            assert json.loads(out.splitlines()[-1])["type"] == "RunSucceeded"
            owner = call(*program.look("show", run, "--json")).json["owner"]
            assert (owner["state"], owner["pid"]) == ("alive", serving.pid)
            assert set(Counter(program.calls()).values()) == {1}
            other.terminate()
            assert other.wait(timeout=LIMIT_S) == 0
        finally:
            other.kill()


def test_a_wrong_file_is_said_before_anything_is_made(call: Call, tmp_path: Path) -> None:
    said = call("submit", str(tmp_path / "none.py"), "--data", str(tmp_path / "data"))
    assert said.status == 2
    assert not (tmp_path / "data").exists()


def test_a_failed_task_is_retried_and_the_run_goes_on(call: Call, copied: Program) -> None:
    (run,) = call(*copied.look("ls", "--json", "--status", "failed")).json
    shown = call(*copied.look("show", run["run"])).out
    assert f"traceback: dagbok show {run['run'][:12]} --task part-01" in shown
    task = call(*copied.look("show", run["run"], "--task", "part-01")).out
    assert 'raise ValueError("no ' in task
    assert "\x1b" not in task
    said = call(*copied.look("retry", run["run"], "part-01", "--note", "once more"))
    assert said.status == 0
    assert "nothing goes on" in said.err
    assert call(*copied.look("show", run["run"], "--json")).json["run"]["status"] == "running"
    assert "nothing goes on" in call(*copied.look("show", run["run"])).out
    assert "nothing goes on" in call(*copied.look("ls")).err


def test_a_branch_is_cancelled_and_a_task_superseded(call: Call, copied: Program) -> None:
    spec = {
        "id": "other",
        "goal": "g",
        "worker": "part",
        "verifier": "check",
        "inputs": [1, "pass", str(copied.folder)],
    }
    said = call(*copied.look("supersede", "last", "part-01", "--spec", json.dumps(spec), "--json"))
    assert said.status == 0, said.err
    assert "TaskSuperseded" in said.json["events"]
    statuses = {task["task"]: task for task in call(*copied.look("show", "last", "--json")).json["tasks"]}
    assert statuses["part-01"]["status"] == "superseded"
    assert statuses["other"]["pool"] == statuses["part-01"]["pool"]
    assert call(*copied.look("cancel", "last", "--task", "other", "--reason", "enough")).status == 0
    (other,) = [t for t in call(*copied.look("show", "last", "--json")).json["tasks"] if t["task"] == "other"]
    assert other["status"] == "cancelled"


def test_a_replacement_is_one_task_from_one_place(call: Call, copied: Program) -> None:
    neither = call(*copied.look("supersede", "last", "part-01"))
    assert neither.status == 2
    assert "either a FILE or --spec" in neither.err
    wrong = call(*copied.look("supersede", "last", "part-01", "--spec", '{"goal": 1}'))
    assert wrong.status == 2
    assert "worker: Field required" in wrong.err
    assert wrong.err.startswith("DAGBOK-USAGE: --spec is no task: ")
    assert len(wrong.err.splitlines()) == 1
    file = copied.folder / "other.json"
    file.write_text('{"goal": "g", "worker": "part", "verifier": "check"}')
    stale = call(*copied.look("supersede", "last", "part-01", str(file), "--revision", "99"))
    assert stale.status == 3
    assert stale.err.startswith("DAGBOK-VERSION-CONFLICT: ")
    assert "see dagbok show" in stale.err
    assert call(*copied.look("supersede", "last", "part-01", str(file))).status == 0


def test_a_changed_verifier_is_amended_and_the_same_command_goes_on(call: Call, program: Program) -> None:
    blocked = call(*program.command("--how", "block", "--json")).json
    program.file.write_text(program.file.read_text().replace('version="1"', 'version="2"'))
    refused = call(*program.command("--how", "block"))
    assert refused.err.startswith("DAGBOK-CONFIG-MISMATCH: ")
    assert f"dagbok amend {blocked['run'][:12]} --import {program.file}" in refused.err
    typo = call(*program.look("amend", "last", "--import", str(program.file), "--verifier", "chek"))
    assert typo.status == 3
    assert "did you mean 'check'?" in typo.err
    assert call(*program.look("amend", "last", "--import", str(program.file), "--reason", "stricter")).status == 0
    assert call(*program.look("resolve", "last", "part-01")).status == 0
    again = call(*program.command("--how", "block", "--json"))
    assert (again.json["run"], again.json["status"]) == (blocked["run"], "succeeded")


def test_nothing_to_amend_is_wrong_usage(call: Call, copied: Program) -> None:
    assert call(*copied.look("amend", "last")).status == 2
    assert call(*copied.look("amend", "last", "--max-depth", "9")).status == 0


def test_other_places_are_named_where_there_is_nothing(call: Call, three_runs: Program) -> None:
    said = call(*three_runs.look("ls", "--tenant", "acme"))
    assert "no runs of acme/default" in said.err
    assert "there are runs with --tenant local --project default" in said.err
    assert "there are runs with" not in call(*three_runs.look("ls", "--status", "paused")).err


def test_a_misspelt_worker_is_said_at_once(program: Program) -> None:
    program.file.write_text(program.file.read_text().replace('worker="root"', 'worker="rot"'))
    with begin(*program.command()) as process:
        assert process.stderr is not None
        line = next(line for line in process.stderr if "no worker" in line)
        process.terminate()
        assert process.wait(timeout=LIMIT_S) == 143
    assert "did you mean 'root'?" in line


def test_the_options_of_a_file_stand_before_those_of_the_command(call: Call, program: Program) -> None:
    for command in ("run", "submit"):
        said = call(command, str(program.file), "--help").out
        assert 0 < said.index("--how") < said.index("--import")


def test_artifacts_come_in_the_order_of_their_tasks(call: Call, three_runs: Program) -> None:
    (run,) = call(*three_runs.look("ls", "--json", "--status", "succeeded")).json
    lines = call(*three_runs.look("artifact", "ls", run["run"])).out.splitlines()
    assert [line.split()[0] for line in lines[1:5]] == ["root", "root", "part-00", "part-01"]
    assert lines[1].endswith("  add up")


def test_a_stopped_owner_is_named_by_those_who_look(
    serving: subprocess.Popen[str], call: Call, program: Program
) -> None:
    run = submitted(call, program, "--how", "gate", "--count", "4")
    # Until it waits, so that it is not stopped while it writes.
    eventually(lambda: call(*program.look("show", run, "--json")).json["run"]["verified"] == 2)
    serving.send_signal(signal.SIGSTOP)
    named = f"owner not responding: process {serving.pid} has owned"
    said = call(*program.look("pause", run))
    assert said.status == 5
    assert named in said.err
    assert named in call(*program.look("show", run)).out
    assert f"kill -CONT {serving.pid}" in call(*program.look("ls")).err
    serving.send_signal(signal.SIGCONT)
    # The pause that nobody waited for counts.
    assert "VERSION-CONFLICT" in call(*program.look("pause", run)).err
