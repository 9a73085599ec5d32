"""`dagbok limits`, `--limit` of `dagbok run` and `dagbok submit`, and `dagbok artifact collect`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import pytest

from dagbok import Limits
from dagbok.cli import main
from dagbok.cli.app import build
from tests.cli.conftest import Call

FLOW = """
from dagbok import Outcome, TaskSpec, verifier, worker

@worker("wait", pure=True)
async def wait(task):
    return Outcome.blocked("not yet")

@verifier("check", version="1")
def check(candidate, task):
    return True

def main() -> TaskSpec:
    return TaskSpec(id="t", goal="g", worker="wait", verifier="check")
"""


@pytest.fixture
def place(tmp_path: Path) -> list[str]:
    """A data folder with one blocked run."""
    file, data = tmp_path / "flow.py", tmp_path / "data"
    file.write_text(FLOW)
    assert main(["run", str(file), "--data", str(data), "--quiet"]) == 4
    return ["--data", str(data)]


def shown(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> object:
    capsys.readouterr()
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_limits_are_shown_and_raised(place: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    before = shown(["limits", "last", *place], capsys)
    assert isinstance(before, dict)
    assert main(["limits", "last", "max_tasks=200000", *place]) == 0
    assert shown(["limits", "last", *place], capsys) == {**before, "max_tasks": 200_000}


def test_limits_only_grow_and_have_names(place: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["limits", "last", "max_tasks=5", *place]) == 3
    assert "DAGBOK-CONFIG-MISMATCH" in capsys.readouterr().err
    assert main(["limits", "last", "tasks=5", *place]) == 2
    assert "max_tasks" in capsys.readouterr().err


def test_nothing_young_is_collected(place: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    found = shown(["artifact", "collect", "--remove", *place], capsys)
    assert isinstance(found, dict)
    assert {kind: report["orphans"] for kind, report in found.items()} == {"artifacts": 0, "snapshots": 0}
    assert main(["artifact", "collect", "--grace-days", "0", *place]) == 2


COSTLY = """
from dagbok import Outcome, TaskSpec, verifier, worker

@worker("pays", pure=True)
async def pays(task):
    task.use(tokens=70, cost="0.50")
    return Outcome.candidate(1)

@verifier("check", version="1")
def check(candidate, task):
    return True

def main(name: str = "") -> list[TaskSpec]:
    first = TaskSpec(id="a", goal=f"g{name}", worker="pays", verifier="check")
    return [first, TaskSpec(id="b", goal="g", worker="pays", verifier="check", depends_on=["a"])]
"""


@pytest.fixture
def costly(tmp_path: Path) -> list[str]:
    """The arguments behind `run` or `submit` for a file whose two tasks cost 70 tokens and 0.50 each."""
    file = tmp_path / "costly.py"
    file.write_text(COSTLY)
    return [str(file), "--data", str(tmp_path / "data")]


def limits_of(costly: list[str], call: Call) -> dict[str, object]:
    shown: dict[str, object] = call("limits", "last", *costly[1:], "--json").json
    return {name: value for name, value in shown.items() if value != getattr(Limits(), name)}


# A budget from the start.


@pytest.mark.parametrize("command", ["run", "submit"])
def test_a_run_starts_with_the_limits_that_are_named(command: str, costly: list[str], call: Call) -> None:
    said = call(command, *costly, "--limit", "max_tokens=10_000", "--limit", "max_cost=2.50", "--name", "x")
    assert said.status == 0
    assert limits_of(costly, call) == {"max_tokens": 10_000, "max_cost": "2.5"}


def test_a_run_that_has_used_its_budget_is_blocked_until_it_is_raised(costly: list[str], call: Call) -> None:
    stuck = call("run", *costly, "--limit", "max_tokens=50", "--json")
    assert stuck.status == 4
    assert call("limits", "last", "max_tokens=200", *costly[1:]).status == 0
    again = call("run", *costly, "--limit", "max_tokens=50", "--json")
    assert (again.status, again.json["run"], again.json["resumed"]) == (0, stuck.json["run"], True)


@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
def test_a_run_that_is_out_of_budget_says_how_to_go_on(quiet: tuple[str, ...], costly: list[str], call: Call) -> None:
    """The command that it names is the one that helps."""
    stuck = call("run", *costly, "--limit", "max_tokens=50", *quiet)
    (advised,) = [line for line in stuck.out.splitlines() if line.startswith("out of tokens; to go on: dagbok ")]
    assert call(*advised.partition("dagbok ")[2].split()).status == 0
    assert call("run", *costly, "--limit", "max_tokens=50").status == 0


def test_why_a_run_is_blocked_is_told_to_programs(costly: list[str], call: Call) -> None:
    stuck = call("run", *costly, "--limit", "max_tokens=50", "--json").json
    assert (stuck["status"], stuck["code"], stuck["blocked"]) == ("blocked", "budget_exhausted", {})
    call("limits", "last", "max_tokens=200", *costly[1:])
    assert call("run", *costly, "--json").json["code"] is None


def test_the_same_command_does_not_take_back_what_was_raised_and_says_so(costly: list[str], call: Call) -> None:
    """Both for who waits and for who leaves at once."""
    call("submit", *costly, "--limit", "max_tokens=60")
    call("limits", "last", "max_tokens=90", *costly[1:])
    for command, status in (("submit", 0), ("run", 0)):
        said = call(command, *costly, "--limit", "max_tokens=60")
        assert said.status == status
        assert "the run has max_tokens=90, which stays: limits only grow" in said.err
    assert limits_of(costly, call) == {"max_tokens": 90}


@pytest.mark.parametrize("command", ["run", "submit"])
def test_a_run_that_is_there_without_a_budget_gets_it(command: str, costly: list[str], call: Call) -> None:
    call("submit", *costly)
    said = call(command, *costly, "--limit", "max_tokens=70", "--limit", "max_open=2000")
    assert said.status == (4 if command == "run" else 0)
    assert "stays" not in said.err
    assert limits_of(costly, call) == {"max_tokens": 70, "max_open": 2_000}


@pytest.mark.parametrize("command", ["run", "submit"])
def test_a_budget_below_what_is_used_is_refused_with_the_least(command: str, costly: list[str], call: Call) -> None:
    assert call("run", *costly, "--limit", "max_tokens=50").status == 4
    said = call(command, *costly, "--limit", "max_cost=0.49")
    assert said.status == 3
    assert said.err.splitlines()[-1] == (
        "DAGBOK-BUDGET-EXHAUSTED: max_cost would be below the cost used (0.5) — name at least max_cost=0.5"
    )


WRONG = [
    ("max_token=5", "'max_token=5' names no limit; did you mean max_tokens? — limits: max_tasks, "),
    ("5", "'5' names no limit — limits: "),
    ("max_tokens", "'max_tokens' is no NAME=NUMBER of a limit — write each once, as max_tokens=10000 or max_cost=2.50"),
    ("max_tokens=-5", "'max_tokens=-5' is no NAME=NUMBER"),
    ("max_tokens=5.0", "'max_tokens=5.0' is no NAME=NUMBER"),
    ("max_tokens=1e3", "'max_tokens=1e3' is no NAME=NUMBER"),
    ("max_tokens=0", "max_tokens: Input should be greater than 0"),
    (f"max_tokens={2**53 + 1}", "max_tokens: Input should be less than"),
    (f"max_tokens={'9' * 5_000}", "is no NAME=NUMBER"),
    ("max_cost=1,5", "max_cost: no decimal number"),
    ("max_cost=-1", "max_cost: not within 0"),
    ("max_cost=", "max_cost: no decimal number"),
]


@pytest.mark.parametrize(("written", "said"), WRONG, ids=[written[:20] for written, _ in WRONG])
def test_what_is_no_limit_is_told_before_anything_starts(
    written: str, said: str, costly: list[str], call: Call, tmp_path: Path
) -> None:
    for arguments in (["run", *costly, "--limit", written], ["submit", *costly, "--limit", written]):
        wrong = call(*arguments)
        assert wrong.status == 2
        assert wrong.err.startswith("DAGBOK-USAGE: ")
        assert said in wrong.err
    assert not (tmp_path / "data").exists()


def test_a_limit_is_named_once(costly: list[str], call: Call) -> None:
    wrong = call("run", *costly, "--limit", "max_tokens=5", "--limit", "max_tokens=6")
    assert (wrong.status, "max_tokens is named twice" in wrong.err) == (2, True)


# Looking and helping.


def test_what_is_used_stands_below_the_limits(costly: list[str], call: Call) -> None:
    call("run", *costly, "--limit", "max_tokens=50")
    lines = call("limits", "last", *costly[1:]).out.splitlines()
    assert "max_tokens                 50" in lines
    assert lines[-1] == "used: tokens 70 of 50, cost 0.5"


def test_setting_a_limit_says_when_nobody_goes_on(costly: list[str], call: Call) -> None:
    call("run", *costly, "--limit", "max_tokens=50")
    said = call("limits", "last", "max_tokens=200", *costly[1:])
    assert said.out.startswith("limits set: run ")
    assert "dagbok up --import FILE" in said.err


def test_a_limit_is_set_where_another_stands_above_its_default(costly: list[str], call: Call) -> None:
    call("submit", *costly, "--limit", "max_attempts=9", "--limit", "max_open=5")
    assert call("limits", "last", "max_tokens=200", *costly[1:]).status == 0
    assert limits_of(costly, call) == {"max_attempts": 9, "max_open": 5, "max_tokens": 200}


@pytest.mark.parametrize("command", ["run", "submit", "limits"])
def test_the_help_says_how_a_limit_is_written(command: str, call: Call) -> None:
    assert "NAME=NUMBER" in call(command, "--help").out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_the_names_of_limits(shell: Literal["bash", "zsh", "fish"]) -> None:
    """Behind `--limit` of both commands, and behind the run of `dagbok limits`."""
    offered = [line for line in build().generate_completion(shell=shell).splitlines() if "max_wall_ms=" in line]
    assert len(offered) >= 3
    for line in offered:
        assert all(f"{name}=" in line for name in Limits.model_fields)
