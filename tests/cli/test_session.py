"""`dagbok session`: what a worker has put down, after any turn, and a task that goes on with it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Call

PROGRAM = '''
import json
from dagbok import Candidate, Outcome, SessionFork, TaskContext, TaskSpec, verifier, worker

def main(said: str = "a b c", session: str = "null") -> TaskSpec:
    """Say words, one in each turn."""
    given = json.loads(session)
    return TaskSpec(id="talk", goal="talk", worker="talks", verifier="any", inputs=said.split(),
                    session=None if given is None else SessionFork(**given))

@worker("talks")
async def talks(task: TaskContext) -> Outcome:
    words = task.session.load() or []
    for word in task.inputs:
        words.append(word)
        await task.session.save(words)
    return Outcome.candidate(words)

@worker("silent")
async def silent(task: TaskContext) -> Outcome:
    return Outcome.candidate(0)

@verifier("any", version="1")
def anything(candidate: Candidate, task: TaskContext) -> bool:
    return True
'''


def test_every_turn_is_shown_and_another_run_goes_on_from_one(call: Call, tmp_path: Path) -> None:
    program, data = tmp_path / "talk.py", ("--data", str(tmp_path / "data"))
    program.write_text(PROGRAM)
    assert call("run", str(program), *data, "--quiet").status == 0
    last = call("session", "show", "last", "talk", *data)
    assert (last.status, json.loads(last.out)) == (0, ["a", "b", "c"])
    assert last.err == "task talk, turn 3, of those up to 3\n"
    second = call("session", "show", "last", "ta", "--turn", "2", "--json", *data).json
    assert (second["value"], second["turn"], second["last_turn"], len(second["digest"])) == (["a", "b"], 2, 3, 64)
    missing = call("session", "show", "last", "talk", "--turn", "4", *data)
    assert (missing.status, missing.err.count("it has 1 to 3")) == (3, 1)

    at = [call("session", "show", "last", "talk", "--json", "--event", str(event), *data) for event in (1, 99)]
    assert [each.status for each in at] == [3, 3]
    assert "has no session" in at[0].error["message"]
    assert "has no event 99" in at[1].error["message"]
    turns = [call("session", "show", "last", "talk", "--json", "--event", str(n), *data) for n in range(2, 20)]
    seen = [each.json["turn"] for each in turns if each.status == 0]
    assert (seen == sorted(seen), set(seen)) == (True, {1, 2, 3})
    assert call("session", "show", "last", "talk", "--turn", "1", "--event", "9", *data).status == 2

    forked = call("session", "fork", "last", "talk", "--turn", "1", *data)
    assert call("run", str(program), *data, "--quiet", "--said", "x", "--session", forked.out.strip()).status == 0
    other = call("session", "show", "last", "talk", "--json", *data).json
    assert (other["value"], other["turn"]) == (["a", "x"], 2)
    begun = call("session", "show", "last", "talk", "--turn", "1", "--json", *data).json
    assert begun["value"] == ["a"], "what it began with is its first turn"
    assert call("session", "show", "last", "talk", *data, "--tenant", "rival").status == 3


def test_a_task_whose_worker_puts_nothing_down_has_no_session(call: Call, tmp_path: Path) -> None:
    program, data = tmp_path / "talk.py", ("--data", str(tmp_path / "data"))
    program.write_text(PROGRAM.replace('worker="talks"', 'worker="silent"'))
    assert call("run", str(program), *data, "--quiet").status == 0
    said = call("session", "show", "last", "talk", *data, "--json")
    assert (said.status, said.error["code"]) == (3, "not_found")
    assert "has no session" in said.error["message"]
