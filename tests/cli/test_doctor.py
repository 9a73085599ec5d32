"""`dagbok doctor --data`: what is wrong with a data folder, seen from outside its processes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Call, Said
from tests.cli.programs import LIMIT_S, Program, begin, eventually

SLOW = """
import asyncio
from dagbok import Candidate, Outcome, TaskContext, TaskSpec, verifier, worker

@worker("slow")
async def slow(task: TaskContext) -> Outcome:
    await asyncio.Event().wait()
    raise AssertionError

@verifier("yes", version="1")
def yes(candidate: Candidate, task: TaskContext) -> bool:
    return True

def main() -> TaskSpec:
    return TaskSpec(id="slow", goal="g", worker="slow", verifier="yes", lease_s=0.5)
"""


def found(said: Said) -> Mapping[str, Mapping[str, Any]]:
    """The findings, by what they are of."""
    return {each["what"]: each for each in said.json}


def wrong(said: Said) -> set[str]:
    """What was found to be wrong."""
    return {each["what"] for each in said.json if each["state"] != "ok"}


def doctor(call: Call, program: Program) -> Said:
    return call(*program.look("doctor", "--json"))


def test_a_folder_where_nothing_would_go_on_is_well(call: Call, three_runs: Program) -> None:
    before = sorted(path.name for path in three_runs.data.rglob("*"))
    said = doctor(call, three_runs)
    assert (said.status, wrong(said)) == (0, set())
    assert set(found(said)) == {"versions", "partitions", "owner", "pools", "keys", "deadlines", "paused"}
    plain = call(*three_runs.look("doctor"))
    assert plain.out.splitlines()[0].split() == ["WHAT", "STATE", "FOUND"]
    assert plain.err == ""
    assert sorted(path.name for path in three_runs.data.rglob("*")) == before, "whoever looks leaves nothing behind"


def test_a_served_run_is_well_and_one_that_was_killed_has_nobody(call: Call, program: Program) -> None:
    with begin(*program.command("--how", "gate", "--count", "6")) as process:
        eventually(lambda: len(program.calls()) == 4)
        said = doctor(call, program)
        assert (said.status, wrong(said)) == (0, set())
        assert found(said)["owner"]["numbers"]["runs"] == 1
        process.kill()
    said = doctor(call, program)
    owner = found(said)["owner"]
    assert (said.status, owner["state"]) == (1, "failed")
    assert "no process owns" in owner["told"]
    assert "1 run would go on" in owner["told"]
    assert "dagbok up" in owner["advice"]


def test_attempts_in_a_pool_that_nobody_serves(call: Call, program: Program) -> None:
    assert call("submit", *program.command("--how", "pass")[1:]).status == 0
    said = doctor(call, program)
    (pool,) = [each for what, each in found(said).items() if what.startswith("pool ")]
    assert (said.status, pool["state"], pool["about"]["kind"]) == (1, "failed", "work")
    assert "nobody serves it: 1 attempt open that nobody has, of root" in pool["told"]


def test_a_key_that_nobody_has(call: Call, program: Program) -> None:
    with begin(*program.command("--how", "unserved", "--count", "2")) as process:
        eventually(lambda: "keys" in (wrong(doctor(call, program)) if program.data.joinpath("log.db").exists() else ""))
        said = doctor(call, program)
        process.kill()
    key = found(said)["keys"]
    assert (said.status, wrong(said), key["state"]) == (1, {"keys"}, "failed")
    assert key["about"]["key"] == "nobody"
    assert key["numbers"]["open"] == 2


def test_a_paused_run_with_nothing_under_way(call: Call, program: Program) -> None:
    assert call("submit", *program.command("--how", "pass")[1:]).status == 0
    assert call(*program.look("pause", "last", "--reason", "lunch \x1b[31m")).status == 0
    said = doctor(call, program)
    paused = found(said)["paused"]
    assert (said.status, wrong(said), paused["state"]) == (0, {"paused"}, "warning")
    plain = call(*program.look("doctor"))
    assert "(lunch  [31m)" in plain.out
    assert f"dagbok resume {paused['about']['run']} --tenant local" in plain.err
    assert "\x1b" not in plain.out + plain.err


def test_deadlines_that_nobody_heeds(call: Call, tmp_path: Path) -> None:
    program = Program(tmp_path)
    program.file.write_text(SLOW)
    with begin("run", str(program.file), "--data", str(program.data), "--quiet") as process:
        eventually(lambda: "AttemptStarted" in call(*program.look("events", "last")).out)
        process.kill()
    eventually(lambda: "deadlines" in wrong(doctor(call, program)))
    late = found(doctor(call, program))["deadlines"]
    assert (late["state"], late["about"]["kind"], late["about"]["task"]) == ("failed", "lease", "slow")
    assert 10 <= late["numbers"]["late_s"] < LIMIT_S


def test_a_log_that_is_gone_or_damaged(call: Call, copied: Program) -> None:
    with closing(sqlite3.connect(copied.data / "log.db")) as log:
        log.execute("PRAGMA journal_mode=DELETE")
        log.execute("UPDATE events SET value = x'00' WHERE rowid = (SELECT max(rowid) FROM events)")
        log.commit()
    said = doctor(call, copied)
    assert said.status == 1
    assert wrong(said) <= {"log", "partition 0"}
    assert wrong(said)
    copied.data.joinpath("log.db").unlink()
    gone = doctor(call, copied)
    assert (gone.status, wrong(gone)) == (1, {"log"})
    assert "is gone" in found(gone)["log"]["told"]
    assert "backup" in found(gone)["log"]["advice"]


def test_it_is_about_one_place_that_is_there(call: Call, tmp_path: Path) -> None:
    assert call("doctor", "--data", str(tmp_path / "nothing")).status == 3
    both = call("doctor", "--data", str(tmp_path), "--kafka", "127.0.0.1:1", "--json")
    assert (both.status, json.loads(both.err)["error"]["code"]) == (2, "usage")


def test_without_options_it_is_about_the_folder_that_other_commands_are_about(
    call: Call, three_runs: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DAGBOK_KAFKA_BOOTSTRAP_SERVERS", raising=False)
    monkeypatch.setenv("DAGBOK_DATA", str(three_runs.data))
    said = call("doctor")
    assert said.status == 0
    assert said.err == f"no broker is named: this is the data folder {three_runs.data}\n"
    assert found(call("doctor", "--json")).keys() >= {"owner", "pools"}
    named = call("doctor", "--kafka", "127.0.0.1:1", "--json")
    assert (named.status, wrong(named)) == (1, {"broker"})
