"""`dagbok run FILE`: which run it is, how it ends, and what it leaves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Call
from tests.cli.programs import Program


def test_it_ends_with_the_tree_the_files_and_the_word(call: Call, program: Program) -> None:
    said = call(*program.command())
    assert said.status == 0
    lines = said.out.splitlines()
    assert any(line.startswith("run ") and line.endswith("  succeeded  4 tasks") for line in lines)
    assert any(line.startswith("root  verified  2 attempts") for line in lines)
    assert lines[-1].startswith("succeeded: 4 tasks in ")
    (page,) = program.data.glob("output/*/page.md")
    assert page.read_text() == "# total"
    assert any(line.startswith("page: ") and line.endswith("page.md") for line in lines)


def test_as_json_it_is_one_object_and_what_workers_print_is_elsewhere(call: Call, program: Program) -> None:
    said = call(*program.command("--json"))
    told = said.json
    assert told["status"] == "succeeded"
    assert told["counts"] == {"verified": 4}
    assert not told["resumed"]
    paths = {item["name"]: Path(item["path"]) for item in told["artifacts"]}
    assert json.loads(paths["result"].read_bytes()) == {"total": 3}
    assert "a worker prints this" in said.err


def test_after_a_run_that_ended_the_same_command_starts_the_next_one(call: Call, program: Program) -> None:
    first, second = (call(*program.command("--json")).json for _ in range(2))
    assert first["run"] != second["run"]
    assert not second["resumed"]
    other = call(*program.command("--json", "--count", "2")).json
    assert other["run"] not in (first["run"], second["run"])


def test_an_unfinished_run_is_gone_on_with_unless_a_new_one_is_wanted(call: Call, program: Program) -> None:
    blocked = call(*program.command("--how", "block", "--json"))
    assert blocked.status == 4
    assert blocked.json["blocked"] == {"part-01": "worker_blocked"}
    new = call(*program.command("--how", "block", "--json", "--new"))
    assert new.json["run"] != blocked.json["run"]
    before = len(program.calls())
    assert call(*program.look("resolve", blocked.json["run"], "part-01")).status == 0
    again = call(*program.command("--how", "block", "--json"))
    assert again.status == 0
    assert again.json["run"] == blocked.json["run"]
    assert again.json["resumed"]
    # The new run is still blocked in the same folder; of the old one only the task that was blocked ran again.
    assert program.calls()[before:] == ["part-01"]


def test_a_failed_run_says_what_failed(call: Call, program: Program) -> None:
    said = call(*program.command("--how", "fail", "--quiet"))
    assert said.status == 1
    assert "failed: part-01 (worker_failed)" in said.out
    assert said.out.splitlines()[-1].startswith("failed: 4 tasks (2 verified, 1 failed, 1 not finished) in ")
    assert said.err == ""


def test_a_file_that_changed_under_an_unfinished_run_is_refused(call: Call, program: Program) -> None:
    assert call(*program.command("--how", "block", "--quiet")).status == 4
    program.file.write_text(program.file.read_text().replace('version="1"', 'version="2"'))
    said = call(*program.command("--how", "block"))
    assert said.status == 3
    assert said.err.startswith("DAGBOK-CONFIG-MISMATCH: ")
    assert "pinned.verifiers" in said.err
    assert "--new" in said.err


def test_workers_may_be_in_another_file(call: Call, program: Program) -> None:
    source = program.file.read_text()
    where = source.index("How = ")
    workers = program.folder / "workers.py"
    workers.write_text(source[:where])
    program.file.write_text(
        "from pathlib import Path\nfrom typing import Literal\nfrom dagbok import TaskSpec\n" + source[where:]
    )
    assert call(*program.command("--json")).status == 3
    assert call(*program.command("--json", "--import", str(workers))).json["status"] == "succeeded"


def test_several_roots_have_folders_of_their_own(call: Call, program: Program) -> None:
    source = program.file.read_text()
    program.file.write_text(
        source[: source.index("def main")]
        + "def main(at: Path):\n"
        + "    spec = dict(goal='part', worker='part', verifier='check', inputs=[1, 'pass', str(at)])\n"
        + "    return [TaskSpec(id='left', **spec), TaskSpec(id='right', **spec)]\n"
    )
    assert call(*program.command("--quiet")).status == 0
    assert len(list(program.data.glob("output/*/left/result.json"))) == 1
    assert len(list(program.data.glob("output/*/right/result.json"))) == 1


def test_a_tenant_has_runs_of_its_own(call: Call, program: Program) -> None:
    mine = call(*program.command("--json")).json
    theirs = call(*program.command("--json", "--tenant", "acme")).json
    assert mine["run"] != theirs["run"]
    (listed,) = call(*program.look("ls", "--json", "--tenant", "acme")).json
    assert listed["run"] == theirs["run"]


def test_the_data_folder_may_come_from_the_environment(
    call: Call, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGBOK_DATA", str(program.folder / "elsewhere"))
    said = call("run", str(program.file), "--at", str(program.folder), "--quiet")
    assert said.status == 0
    assert (program.folder / "elsewhere" / "log.db").is_file()
