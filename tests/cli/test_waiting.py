"""What is said of tasks that do not run: whom they wait for, that nobody serves their pool, and what serves it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from dagbok.cli.module_file import pool_of
from dagbok.cli.unserved import how_to_serve, nobody_serves
from dagbok.events.log.clock import system_ms
from dagbok.events.run.commands import SupersedeTask
from dagbok.events.run.values import Limits
from dagbok.settings import Settings
from dagbok.testing import act
from dagbok.testing.make import blocked, candidate, failure, start, task
from tests.cli.conftest import Call
from tests.cli.programs import LIMIT_S, Program, begin
from tests.cli.test_showing import RUN, written
from tests.support.logbuilder import LogBuilder

REPLACEMENT = """
from dagbok import Outcome, TaskSpec, worker


@worker("other")
def other(task):
    return Outcome.candidate(7)


def main():
    return TaskSpec(goal="another way", worker="other", verifier="check")
"""


def lines_of(out: str) -> dict[str, str]:
    """The lines of a tree by the first word."""
    return {line.split()[0]: line for line in out.splitlines() if line}


def test_a_task_says_what_it_waits_for_and_what_stands_still_first(call: Call, tmp_path: Path) -> None:
    builder = LogBuilder()
    names = ("a", "b", "c", "d")
    builder.send(RUN, start(*[task(name) for name in names], task("end", depends_on=names)))
    builder.send(RUN, act.submit_outcome(builder.run(RUN), "d", blocked("the key is missing")))
    builder.send(RUN, act.submit_outcome(builder.run(RUN), "b", candidate("done")))
    builder.send(RUN, act.submit_verdict(builder.run(RUN), "b", "pass"))
    options = written(builder, tmp_path)
    for arguments in (["show", RUN], ["show", RUN, "--all"]):
        assert lines_of(call(*arguments, *options).out)["end"].endswith("— waits for d (blocked), a, c")
    assert "waits for d (blocked), a, c" in call("show", RUN, "--task", "end", *options).out.splitlines()


def test_what_the_limit_on_open_attempts_holds_back_waits_for_its_turn(call: Call, tmp_path: Path) -> None:
    builder = LogBuilder()
    builder.send(RUN, start(task("a"), task("b"), limits=Limits(max_open=1)))
    lines = lines_of(call("show", RUN, *written(builder, tmp_path)).out)
    assert lines["b"].endswith("— waits for its turn")
    assert "waits" not in lines["a"]


def test_a_backoff_says_when_it_is_over(call: Call, tmp_path: Path) -> None:
    builder = LogBuilder()
    builder.now_ms = system_ms() + 3_600_000
    builder.send(RUN, start(task("a")))
    builder.send(RUN, act.fail_attempt(builder.run(RUN), "a", failure()))
    line = lines_of(call("show", RUN, *written(builder, tmp_path)).out)["a"]
    assert re.search(r"  — again in (59 m \d\d s|1 h 00 m) \([0-9:.]+\); worker_failed: ", line)


def test_a_superseded_task_names_what_stands_in_its_place(call: Call, tmp_path: Path) -> None:
    builder = LogBuilder()
    builder.send(RUN, start(task("a")))
    builder.send(RUN, SupersedeTask("a", task("b")))
    builder.send(RUN, SupersedeTask("b", task("c")))
    options = written(builder, tmp_path)
    (line,) = [line for line in call("show", RUN, *options).out.splitlines() if line.strip().startswith("c ")]
    assert " ms" not in line, "what is ready has taken no time yet"
    assert "in its place: b" in call("show", RUN, "--task", "a", *options).out.splitlines()
    said = call("artifact", "get", RUN, "a", *options)
    assert said.status == 3
    assert "task a was superseded by c, which has published nothing: it is ready" in said.err


def test_what_its_replacement_published_is_got_under_the_old_name(call: Call, program: Program, tmp_path: Path) -> None:
    assert call(*program.command("--how", "block", "--quiet")).status == 4
    spec = json.dumps(
        {"goal": "g", "worker": "part", "verifier": "check", "inputs": [5, "pass", str(program.folder)], "id": "new"}
    )
    told = call(*program.look("supersede", "last", "part-01", "--spec", spec, "--json")).json
    assert told["replacement"] == "new"
    assert call(*program.command("--how", "block", "--quiet")).status == 0
    got = call(*program.look("artifact", "get", "last", "part-01", "-o", str(tmp_path / "got.json")))
    assert (tmp_path / "got.json").read_text() == "5"
    assert "task part-01 was superseded by new: this is what that published" in got.err


def test_a_replacement_from_another_file_says_what_serves_it_and_so_does_everybody_who_looks(
    call: Call, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call(*program.command("--how", "block", "--quiet")).status == 4
    monkeypatch.chdir(program.folder)
    file = program.folder / "another.py"
    file.write_text(REPLACEMENT)
    said = call(*program.look("supersede", "last", "part-01", str(file)))
    assert said.status == 0, said.err
    new = said.out.split(" by ")[1].split(":")[0]
    how = f"nobody serves the pool {pool_of(file)}: dagbok up --import another.py"
    assert how in said.err
    shown = call(*program.look("show", "last")).out
    assert "nobody serves its pool" not in shown, "nobody decides either, which is said once"
    assert any(line.startswith(how) for line in shown.splitlines())
    assert how in call(*program.look("show", "last", "--task", new)).out
    with begin(*program.command("--how", "block")) as process:
        assert process.stderr is not None
        line = next(line for line in process.stderr if "no process serves" in line)
        beside = call(*program.look("show", "last")).out
        process.terminate()
        assert process.wait(timeout=LIMIT_S) == 143
    (task,) = [line for line in beside.splitlines() if line.lstrip("├└─ ").startswith(new[:12])]
    assert task.endswith(f"— nobody serves its pool {pool_of(file)}")
    both = "dagbok up --import another.py --import adding.py --data data"
    assert f"no process serves pool '{pool_of(file)}': {both}\n" in line


def test_several_roots_say_whose_a_file_is_also_when_one_alone_is_verified(call: Call, program: Program) -> None:
    source = program.file.read_text()
    good = 'TaskSpec(id="good", goal="add up", worker="root", verifier="check", inputs=[count, "pass", str(at)])'
    bad = 'TaskSpec(id="bad", goal="one", worker="part", verifier="check", inputs=[1, "fail", str(at)], max_attempts=1)'
    program.file.write_text(source[: source.index("    inputs = [count")] + f"    return [{good}, {bad}]\n")
    said = call(*program.command("--how", "fail"))
    assert said.status == 1
    files = [line.split() for line in said.out.splitlines() if "/output/" in line]
    assert [(task, name, Path(path).parent.name) for task, name, path in files] == [
        ("good", "result:", "good"),
        ("good", "page:", "good"),
    ]


def test_the_files_of_pools_are_found_where_they_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "below").mkdir()
    files = [tmp_path / "a flow.py", tmp_path / "below" / "parts.py", tmp_path / ("x" * 60 + ".py")]
    for file in files:
        file.touch()
    pools = [pool_of(file) for file in files]
    there = Settings(data=tmp_path / "dagbok-data")
    assert (
        how_to_serve(pools, there) == f"dagbok up --import 'a flow.py' --import below/parts.py --import {files[2].name}"
    )
    assert how_to_serve(pools[1:2], there, pools[:1]) == "dagbok up --import below/parts.py --import 'a flow.py'"


@pytest.mark.parametrize(
    ("pools", "said"),
    [
        (["default"], "nobody serves the pool default: dagbok up --import FILE"),
        (["gone-0123456789"], "nobody serves the pool gone-0123456789: dagbok up --import …/gone.py"),
        (["gpu"], "nobody serves the pool gpu: start the program that serves it"),
        (["gpu", "a", "b", "c"], "nobody serves the pools a, b, c and 1 more: start the programs that serve them"),
    ],
)
def test_of_a_pool_without_a_file_is_said_what_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pools: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert nobody_serves(pools, Settings(data=tmp_path / "dagbok-data")) == [said]
