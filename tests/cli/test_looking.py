"""`ls`, `show`, `events` and `artifact`: text for people, JSON for programs, and nothing of others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dagbok.cli import main
from tests.cli.conftest import Call
from tests.cli.programs import Program

READS = (["ls"], ["show", "last"], ["events", "last"], ["artifact", "ls", "last"], ["artifact", "get", "last", "root"])


def run_of(call: Call, program: Program, status: str) -> str:
    """The id of the run with this status."""
    (run,) = call(*program.look("ls", "--json", "--status", status)).json
    found: str = run["run"]
    return found


def test_runs_are_listed_newest_first(call: Call, three_runs: Program) -> None:
    lines = call(*three_runs.look("ls")).out.splitlines()
    assert lines[0].split() == ["RUN", "STATUS", "STARTED", "TOOK", "TASKS"]
    assert [line.split()[1] for line in lines[1:]] == ["blocked", "failed", "succeeded"]
    assert lines[3].endswith("15: 15 verified")


def test_the_list_as_json_has_every_column(call: Call, three_runs: Program) -> None:
    runs = call(*three_runs.look("ls", "--json", "--limit", "2")).json
    assert [run["status"] for run in runs] == ["blocked", "failed"]
    assert runs[0]["tenant"] == "local"
    assert runs[0]["tasks"] == 4


def test_a_tree_shows_the_first_of_many_tasks_and_counts_the_others(call: Call, three_runs: Program) -> None:
    said = call(*three_runs.look("show", run_of(call, three_runs, "succeeded")))
    assert "root  verified  2 attempts" in said.out
    assert "├─ part-09  verified  1 attempt" in said.out
    assert "part-10" not in said.out
    assert "└─ … 4 more verified" in said.out
    assert "15 tasks: 15 verified" in said.out


def test_all_tasks_are_shown_when_asked_for(call: Call, three_runs: Program) -> None:
    assert "└─ part-13" in call(*three_runs.look("show", run_of(call, three_runs, "succeeded"), "--all")).out


def test_a_failure_is_shown_with_its_reason_and_without_control_characters(call: Call, three_runs: Program) -> None:
    said = call(*three_runs.look("show", run_of(call, three_runs, "failed")))
    (line,) = [line for line in said.out.splitlines() if "─ part-01" in line]
    assert "failed  3 attempts" in line
    assert "worker_failed: ValueError: no [31mgood at all" in line.replace("  ", " ")
    assert "\x1b" not in said.out


def test_a_block_is_shown_with_the_command_that_ends_it(call: Call, three_runs: Program) -> None:
    run = run_of(call, three_runs, "blocked")
    said = call(*three_runs.look("show", run))
    assert "worker_blocked: the key is missing" in said.out
    assert f"dagbok resolve {run[:12]} part-01 --note" in said.out


def test_a_run_as_json_has_tasks_edges_attempts_and_artifacts(call: Call, three_runs: Program) -> None:
    told = call(*three_runs.look("show", run_of(call, three_runs, "succeeded"), "--json")).json
    assert told["run"]["status"] == "succeeded"
    assert len(told["tasks"]) == 15
    assert len(told["edges"]) == 14
    assert {attempt["status"] for attempt in told["attempts"]} == {"succeeded"}
    assert {artifact["name"] for artifact in told["artifacts"]} == {"result", "page"}


def test_last_is_the_newest_run(call: Call, three_runs: Program) -> None:
    run = run_of(call, three_runs, "blocked")
    assert call(*three_runs.look("show")).out.startswith(f"run {run}  blocked")


def test_a_run_is_named_by_its_first_digits(call: Call, three_runs: Program) -> None:
    run = run_of(call, three_runs, "failed")
    assert call(*three_runs.look("show", run[:12])).out.startswith(f"run {run}  failed")


def test_a_name_that_fits_several_tasks_is_an_error(call: Call, three_runs: Program) -> None:
    said = call(*three_runs.look("show", run_of(call, three_runs, "succeeded"), "--task", "part-"))
    assert said.status == 2
    assert said.err.startswith("DAGBOK-USAGE: 14 tasks begin with part-")
    assert said.err.endswith("write more of the id\n")


def test_events_are_numbered_without_a_hole(call: Call, three_runs: Program) -> None:
    run = run_of(call, three_runs, "failed")
    lines = call(*three_runs.look("events", run, "--json")).out.splitlines()
    events = [json.loads(line) for line in lines]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert events[0]["type"] == "RunStarted"
    assert events[-1]["type"] == "RunFailed"
    assert events[-1]["data"]["code"] == "worker_failed"


def test_events_after_a_number(call: Call, three_runs: Program) -> None:
    run = run_of(call, three_runs, "failed")
    count = len(call(*three_runs.look("events", run)).out.splitlines())
    (last,) = call(*three_runs.look("events", run, "--after", str(count - 1))).out.splitlines()
    assert last.split()[0] == str(count)
    assert last.split()[2] == "RunFailed"


def test_following_a_run_that_is_over_ends(call: Call, three_runs: Program) -> None:
    said = call(*three_runs.look("events", run_of(call, three_runs, "succeeded"), "--follow"))
    assert said.out.splitlines()[-1].split()[2] == "RunSucceeded"


def test_published_artifacts_are_listed(call: Call, three_runs: Program) -> None:
    run = run_of(call, three_runs, "succeeded")
    told = call(*three_runs.look("artifact", "ls", run, "--json")).json
    assert ("root", "page", "text/markdown") in [(item["task"], item["name"], item["media_type"]) for item in told]
    assert len(told) == 16
    assert len(call(*three_runs.look("artifact", "ls", run)).out.splitlines()) == 17


def test_an_artifact_goes_to_a_file(call: Call, three_runs: Program, tmp_path: Path) -> None:
    run = run_of(call, three_runs, "succeeded")
    target = tmp_path / "new" / "page.md"
    said = call(*three_runs.look("artifact", "get", run, "root", "page", "-o", str(target)))
    assert (said.status, said.out) == (0, "")
    assert target.read_text() == "# total"


def test_an_artifact_goes_to_standard_output_as_it_is(
    three_runs: Program, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(three_runs.look("artifact", "get", "last", "part-00")) == 0
    assert capsysbinary.readouterr().out == b"0"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "zzz"], "there is no run zzz of local/default"),
        (["artifact", "get", "last", "nobody"], "has no task nobody"),
        (["artifact", "get", "last", "root"], "task root has published nothing: it is waiting"),
        (["artifact", "get", "last", "part-00", "page"], "task part-00 has published no artifact page"),
    ],
)
def test_what_is_not_there_is_said(call: Call, three_runs: Program, arguments: list[str], message: str) -> None:
    said = call(*three_runs.look(*arguments))
    assert said.status == 3
    assert said.err.startswith("DAGBOK-NOT-FOUND: ")
    assert message in said.err
    assert len(said.err.splitlines()) == 1


@pytest.mark.parametrize("other", [["--tenant", "acme"], ["--project", "other"]])
@pytest.mark.parametrize("arguments", [*READS[1:], ["pause", "last"], ["resolve", "last", "part-01"]])
def test_a_foreign_tenant_or_project_sees_nothing(
    call: Call, three_runs: Program, arguments: list[str], other: list[str]
) -> None:
    run = run_of(call, three_runs, "blocked")
    for name in ("last", run):
        named = [name if argument == "last" else argument for argument in arguments]
        said = call(*three_runs.look(*named, *other))
        assert (said.status, said.out) == (3, "")
    assert call(*three_runs.look("ls", "--json", *other)).json == []


@pytest.mark.parametrize("arguments", [*READS, ["pause", "last"], ["cancel", "last"]])
def test_a_data_folder_that_is_not_there_is_not_made(call: Call, tmp_path: Path, arguments: list[str]) -> None:
    said = call(*arguments, "--data", str(tmp_path / "none"), "--json")
    assert said.status == 3
    assert said.error["code"] == "not_found"
    assert said.error["exit"] == 3
    assert "does not exist" in said.error["message"]
    assert not (tmp_path / "none").exists()


def test_a_folder_without_a_log_is_left_alone(call: Call, tmp_path: Path) -> None:
    assert "has no log" in call("ls", "--data", str(tmp_path)).err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [*READS, ["pause", "last"]])
def test_a_log_that_is_gone_is_said_and_not_begun_anew(call: Call, copied: Program, arguments: list[str]) -> None:
    for file in copied.data.glob("log.db*"):
        file.unlink()
    said = call(*copied.look(*arguments))
    assert said.status == 6
    assert said.err.startswith("DAGBOK-LOG-LOST: ")
    assert "from a backup" in said.err
    assert len(said.err.splitlines()) == 1
    assert list(copied.data.glob("log.db*")) == []


def test_tables_that_are_missing_are_built_from_the_log(call: Call, copied: Program) -> None:
    for file in copied.data.glob("tables.db*"):
        file.unlink()
    assert len(call(*copied.look("ls", "--json")).json) == 3


def test_a_damaged_log_is_a_storage_error(call: Call, copied: Program) -> None:
    for file in copied.data.glob("log.db*"):
        file.write_bytes(b"no database" * 1000)
    said = call(*copied.look("ls"))
    assert said.status == 6
    assert said.err.startswith("DAGBOK-LOG-CORRUPT: ")
    assert len(said.err.splitlines()) == 1
