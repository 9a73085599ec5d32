"""What is said of a run that did not go as somebody meant: numbers that are true, names that are near, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Call, Said

FLOW = """
from dagbok import Candidate, Outcome, TaskContext, TaskSpec, When, verifier, worker

@worker("work")
async def work(task: TaskContext) -> Outcome:
    asked = task.inputs
    if asked == "raise":
        raise ValueError("no good")
    if asked == "look":
        return Outcome.candidate(task.dependencies["nobody"].json())
    if asked == "pick":
        return Outcome.candidate(task.dependencies["first"]["page"].json())
    return Outcome.candidate(1, outputs=asked)

@verifier("yes", version="1")
def yes(candidate: Candidate, task: TaskContext) -> bool:
    return True

@verifier("no", version="1")
def no(candidate: Candidate, task: TaskContext) -> bool:
    return False

def spec(id: str, *after: str | When, asked: object = None, verifier: str = "yes") -> TaskSpec:
    return TaskSpec(id=id, goal=id, worker="work", verifier=verifier, depends_on=after, inputs=asked, max_attempts=2)

def main() -> list[TaskSpec]:
    return [TASKS]
"""


def run(call: Call, folder: Path, tasks: str) -> Said:
    """Run these tasks in a folder of their own."""
    file = folder / "flow.py"
    file.write_text(FLOW.replace("TASKS", tasks))
    return call("run", str(file), "--data", str(folder / "data"))


def task(call: Call, folder: Path, name: str) -> list[str]:
    """What is said of a task of the newest run."""
    said = call("show", "last", "--task", name, "--data", str(folder / "data"))
    assert said.status == 0, said.err
    return said.out.splitlines()


def test_the_end_counts_what_failed_and_what_never_came_to_it(call: Call, tmp_path: Path) -> None:
    said = run(call, tmp_path, "spec('a', asked='raise'), spec('b', 'a'), spec('c', 'b')")
    assert said.status == 1
    last = said.out.splitlines()[-1]
    assert last.startswith("failed: 3 tasks (1 failed, 2 not finished) in ")
    took = last.rpartition(" in ")[2]
    shown = call("show", "last", "--data", str(tmp_path / "data")).out.splitlines()
    assert shown[0].endswith(f"  {took}"), "a run has one duration, whoever is asked"
    assert any(line.startswith("to put another task in the place of one: dagbok supersede ") for line in shown)


def test_a_review_has_the_number_of_the_attempt_that_it_judges(call: Call, tmp_path: Path) -> None:
    assert run(call, tmp_path, "spec('a', verifier='no')").status == 1
    attempts = [line for line in task(call, tmp_path, "a") if line.startswith("attempt")]
    assert [line.split("  ")[:2] for line in attempts] == [
        ["attempt 1: work", "failed"],
        ["attempt 1: review by no", "verdict fail"],
        ["attempt 2: work", "failed"],
        ["attempt 2: review by no", "verdict fail"],
    ]
    assert all("succeeded" not in line for line in attempts)


@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        ("None", "skipped: a has no output decision; it has none: Outcome.candidate(…, outputs={…}) gives them"),
        ("{'verdict': 'reject'}", "skipped: a has no output decision; its outputs: verdict"),
        ("{'decision': 'reject'}", 'skipped: the output decision of a is "reject"'),
    ],
)
def test_a_skipped_task_says_what_its_condition_found(call: Call, tmp_path: Path, outputs: str, said: str) -> None:
    tasks = f"spec('a', asked={outputs}), spec('b', When('a', 'decision', equals='approve')), spec('c', 'b')"
    assert run(call, tmp_path, tasks).status == 0
    assert said in task(call, tmp_path, "b")
    assert "skipped: b was skipped" in task(call, tmp_path, "c")
    assert not [line for line in task(call, tmp_path, "a") if line.startswith("skipped")]


@pytest.mark.parametrize(
    ("tasks", "said"),
    [
        ("spec('review'), spec('b', 'reviw')", "there is no task 'reviw'; did you mean 'review'?"),
        ("spec('a', verifier='yse')", "the run is not bound to verifier 'yse'; did you mean 'yes'?"),
        ("spec('a', verifier='quite-other')", "the run is not bound to verifier 'quite-other' — "),
    ],
)
def test_a_name_that_is_not_there_brings_the_one_that_is_near(
    call: Call, tmp_path: Path, tasks: str, said: str
) -> None:
    assert said in run(call, tmp_path, tasks).err


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("look", "KeyError: \"no dependency 'nobody'; there are: 'first', 'second'\""),
        ("pick", "KeyError: \"no artifact 'page'; there are: 'result'\""),
    ],
)
def test_a_worker_that_looks_for_what_is_not_there_is_told_what_is(
    call: Call, tmp_path: Path, asked: str, said: str
) -> None:
    tasks = f"spec('first'), spec('second'), spec('b', 'first', 'second', asked='{asked}')"
    assert run(call, tmp_path, tasks).status == 1
    assert f"  {said}" in task(call, tmp_path, "b")


def test_a_task_without_a_session_is_said_in_one_line(call: Call, tmp_path: Path) -> None:
    assert run(call, tmp_path, "spec('a')").status == 0
    said = call("session", "show", "last", "a", "--data", str(tmp_path / "data"))
    assert (said.status, len(said.err.splitlines())) == (3, 1)
    assert "task a has no session: its worker has put none down" in said.err


@pytest.mark.parametrize("option", ["--artifacts", "--database"])
def test_a_store_of_kafka_is_wrong_usage_beside_a_data_folder(call: Call, tmp_path: Path, option: str) -> None:
    said = call("ls", "--data", str(tmp_path), option, "somewhere")
    assert said.status == 2
    assert f"{option} is about a log on Kafka" in said.err
    assert "--kafka" in said.err
