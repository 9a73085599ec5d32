"""A worker forks, and the child comes back into the process that it is a copy of: it ends, and speaks for nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.programs import LIMIT_S, begin

PROGRAM = """
import asyncio
import os
from dagbok import Outcome, TaskSpec, verifier, worker

@worker("returns")
async def returns(task):
    return Outcome.candidate(os.fork())

@worker("raises")
async def raises(task):
    child = os.fork()
    if child == 0:
        raise SystemExit(0)
    return Outcome.candidate(child)

@worker("awaits")
async def awaits(task):
    child = os.fork()
    if child == 0:
        await asyncio.sleep(3600)
    return Outcome.candidate(child)

@worker("in-a-thread")
def in_a_thread(task):
    return Outcome.candidate(os.fork())

@worker("beside")
async def beside(task):
    forked = asyncio.get_running_loop().create_future()
    async def fork():
        forked.set_result(os.fork())
    asyncio.create_task(fork())  # no function of dagbok's is on the stack
    return Outcome.candidate(await forked)

@worker("ends-by-itself")
async def ends_by_itself(task):
    child = os.fork()
    if child == 0:
        os._exit(7)
    return Outcome.candidate(child)

@verifier("the child has ended", version="1")
def has_ended(candidate, task):
    _, status = os.waitpid(candidate.json(), 0)
    return os.waitstatus_to_exitcode(status) == task.inputs

def main(worker: str, status: int) -> TaskSpec:
    return TaskSpec(goal="fork", worker=worker, verifier="the child has ended", max_attempts=1, inputs=status)
"""


def _run(tmp_path: Path, worker: str, status: int) -> str:
    """What was said on standard error when the run had succeeded."""
    file = tmp_path / "forking.py"
    file.write_text(PROGRAM)
    with begin("run", str(file), worker, str(status), "--data", str(tmp_path / "data"), "--quiet") as process:
        try:
            out, err = process.communicate(timeout=LIMIT_S)
        finally:
            process.kill()
    assert process.returncode == 0, err
    assert out.splitlines()[-1].startswith("succeeded: 1 task")
    return err


@pytest.mark.parametrize("worker", ["returns", "raises", "awaits", "in-a-thread", "beside"])
def test_a_child_that_comes_back_ends_with_a_line_and_its_parent_goes_on(tmp_path: Path, worker: str) -> None:
    said = [line for line in _run(tmp_path, worker, 70).splitlines() if line.startswith("dagbok: process")]
    assert len(said) == 1
    assert "came back from the function that forked it, and ends here: let a child end by os._exit()" in said[0]


def test_a_child_that_ends_by_itself_is_left_alone(tmp_path: Path) -> None:
    assert "came back" not in _run(tmp_path, "ends-by-itself", 7)
