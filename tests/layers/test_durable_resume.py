"""A session in the log whose layers are others now: it goes on by policy; and one that nobody goes on with is deleted
by a task of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dagbok import Candidate, Outcome, TaskContext, TaskSpec, verifier
from dagbok.agents.layers import Compositor, LayerNode, ResumeAction, ResumePolicy, ResumeRules
from dagbok.agents.layers.durable import LayeredAttempt, LayeredWorker, session_snapshot
from dagbok.agents.workers.terminal import Terminal
from dagbok.events.run.events import SessionSuspended
from dagbok.testing import context
from tests.layers.changing import hooks, kind, node, states
from tests.layers.parts import Told, Traced
from tests.support.hosts import events_of, hosted

DROP, MIGRATE, START_NEW = ResumeAction.DROP, ResumeAction.MIGRATE, ResumeAction.START_NEW


async def counts(attempt: LayeredAttempt) -> Outcome:
    """One more in every layer, which stay suspended."""
    layers = [attempt.run.get_layer(name, Traced) for name in attempt.run.slots]
    for layer in layers:
        layer.runtime_state.count += 1
    return Outcome.candidate([layer.runtime_state.count for layer in layers])


async def first_session(*nodes: LayerNode) -> Any:
    """The session after one attempt."""
    task = context()
    await LayeredWorker(Compositor(nodes), counts).work(task)
    return task.session.load()


def of_session(value: Any) -> dict[str, tuple[str, object]]:
    return states(session_snapshot(value))


async def test_a_session_of_other_layers_goes_on_by_policy() -> None:
    told, other = Told(), kind("other")
    session = await first_session(*[node(told, name) for name in "abcd"])
    told.log.clear()
    policies = {
        "a": ResumePolicy(removed=DROP),
        "b": ResumePolicy(retyped=DROP),
        "d": ResumePolicy(moved=MIGRATE),
    }
    retired = [node(told, "a"), node(told, "b")]
    graph = [node(told, "d"), node(told, "b", other), node(told, "new"), node(told, "c")]
    task = context(session=session)
    strict = LayeredWorker(Compositor(graph), counts, resume=ResumeRules(layers=policies, retired=retired))
    with pytest.raises(Terminal, match=r"cannot be gone on with: .*new is new$"):
        await strict.work(task)
    assert told.log == []
    policies["new"] = ResumePolicy(added=START_NEW)
    layered = LayeredWorker(Compositor(graph), counts, resume=ResumeRules(layers=policies, retired=retired))
    outcome = await layered.work(task)
    assert outcome.artifacts["result"].content == [2, 1, 1, 2]
    after = task.session.load()
    assert of_session(after) == {
        "d": ("suspended", 2),
        "b": ("suspended", 1),
        "new": ("suspended", 1),
        "c": ("suspended", 2),
    }
    assert [each for each in hooks(told) if each.endswith("delete")] == ["b.delete", "a.delete"]
    assert Compositor(graph).diff(session_snapshot(after)).same_graph
    again = await layered.work(context(session=after))
    assert again.artifacts["result"].content == [3, 2, 2, 3]


async def test_what_was_dropped_is_in_the_log_before_the_loop_begins() -> None:
    told = Told()
    session = await first_session(node(told, "a"), node(told, "b"))

    async def dies(attempt: LayeredAttempt) -> Outcome:
        assert set(attempt.task.session.load()["layers"]) == {"a"}
        raise SystemExit

    rules = ResumeRules(layers={"b": ResumePolicy(removed=DROP)}, retired=[node(told, "b")])
    task = context(session=session)
    with pytest.raises(SystemExit):
        await LayeredWorker(Compositor([node(told, "a")]), dies, resume=rules).work(task)
    assert of_session(task.session.load()) == {"a": ("suspended", 1)}


async def test_a_layer_that_was_dropped_in_an_attempt_that_failed_is_not_dropped_again() -> None:
    told, other = Told(), kind("other")
    session = await first_session(*[node(told, name) for name in "abcd"])
    told.log.clear()
    told.fails = {"b.delete": OSError("down")}
    drops = ResumePolicy(removed=DROP, retyped=DROP)
    rules = ResumeRules(default=drops, retired=[node(told, name) for name in "bcd"])
    layered = LayeredWorker(Compositor([node(told, "a"), node(told, "d", other)]), counts, resume=rules)
    task = context(session=session)
    with pytest.raises(OSError, match="down"):
        await layered.work(task)
    assert of_session(task.session.load()) == {"a": ("suspended", 1), "b": ("suspended", 1), "d": ("new", None)}
    told.fails = {}
    outcome = await layered.work(context(session=task.session.load()))
    assert outcome.artifacts["result"].content == [2, 1]
    deleted = [each for each in hooks(told) if each in ("b.delete", "c.delete", "d.delete")]
    assert deleted == ["d.delete", "c.delete", "b.delete", "b.delete"], "that of b failed once"


async def test_states_in_a_session_are_migrated() -> None:
    told = Told()
    session = await first_session(node(told, "a", kind("k", 2)))
    assert session["layers"]["a"]["state_version"] == 2
    doubled = kind("k", 3, {2: lambda state: {"count": state["count"] * 10}})
    task = context(session=session)
    outcome = await LayeredWorker(Compositor([node(told, "a", doubled)]), counts).work(task)
    assert outcome.artifacts["result"].content == [11]
    written = task.session.load()["layers"]["a"]
    assert (written["state_version"], written["state"]) == (3, {"count": 11})
    with pytest.raises(Terminal, match="version 3 of k, and this program reads version 1"):
        await LayeredWorker(Compositor([node(told, "a", kind("k"))]), counts).work(context(session=task.session.load()))


async def test_a_session_without_an_order_or_versions_is_read_as_it_always_was() -> None:
    told = Told()
    session = await first_session(node(told, "a"), node(told, "b"))
    assert set(session["layers"]["a"]) == {"type", "lifecycle", "state"}
    del session["order"]
    outcome = await LayeredWorker(Compositor([node(told, "b"), node(told, "a")]), counts).work(context(session=session))
    assert outcome.artifacts["result"].content == [2, 2]


async def test_the_session_of_a_task_is_disposed_of_by_itself() -> None:
    told = Told({"b.delete": OSError("down")})
    layered = LayeredWorker(Compositor([node(told, "a"), node(told, "b", on="a"), node(told, "c")]), counts)
    task = context()
    await layered.work(task)
    told.log.clear()
    with pytest.raises(OSError, match="down"):
        await layered.dispose(task)
    assert hooks(told) == ["a.resume", "b.resume", "c.resume", "c.delete", "b.delete", "a.suspend"]
    left = task.session.load()
    assert {name: each["lifecycle"] for name, each in left["layers"].items()} == {
        "a": "suspended",
        "b": "suspended",
        "c": "closed",
    }
    told.fails, told.log = {}, []
    outcome = await layered.dispose(context(session=left))
    assert outcome.artifacts["result"].content == {"deleted": ["a", "b"]}
    assert hooks(told) == ["a.resume", "b.resume", "b.delete", "a.delete"]


async def test_there_must_be_a_session_of_layers_to_dispose_of() -> None:
    layered = LayeredWorker(Compositor([]), counts)
    with pytest.raises(Terminal, match="begin with the fork of a session"):
        await layered.dispose(context())
    with pytest.raises(Terminal, match="not of layers as here"):
        await layered.dispose(context(session={"format": "mine"}))
    session = await first_session(node(Told(), "a"))
    with pytest.raises(Terminal, match="Layer 'a' is to be deleted, and nothing here can"):
        await layered.dispose(context(session=session))


async def test_a_value_that_was_read_from_the_log_is_disposed_of_once() -> None:
    told = Told()
    session = await first_session(node(told, "a"))
    plan = Compositor([node(told, "a")])
    await plan.dispose(session_snapshot(session, "digest"))
    with pytest.raises(RuntimeError, match="Snapshot digest was resumed or disposed of before"):
        await plan.dispose(session_snapshot(session, "digest"))


@verifier("any", version="1")
def anything(candidate: Candidate, task: TaskContext) -> bool:
    return True


async def test_a_task_deletes_what_an_ended_one_left_suspended(tmp_path: Path) -> None:
    told = Told()
    layered = LayeredWorker(Compositor([node(told, "a"), node(told, "b")]), counts)
    async with hosted(tmp_path, layered.worker("talks"), layered.disposer("tidies"), anything) as dagbok:
        ended = await dagbok.run(TaskSpec(id="talk", goal="talk", worker="talks", verifier="any"))
        fork = await dagbok.fork(ended.run, "talk")
        told.fails = {"a.delete": OSError("not yet")}
        told.log.clear()

        tidy = TaskSpec(id="tidy", goal="tidy", worker="tidies", verifier="any", session=fork, max_attempts=1)
        failed = await dagbok.run(tidy)
        assert failed.status == "failed"
        rest = await dagbok.fork(failed.run, "tidy")
        told.fails = {}
        done = await dagbok.run(tidy.model_copy(update={"id": "tidy2", "session": rest}))
        assert done.json() == {"deleted": ["a"]}
        assert len(await events_of(dagbok, SessionSuspended)) >= 3
    assert [each for each in hooks(told) if each.endswith("delete")] == ["b.delete", "a.delete", "a.delete"]


async def test_a_program_with_other_layers_goes_on_with_a_run_that_was_under_way(tmp_path: Path) -> None:
    told, put_down = Told(), asyncio.Event()

    async def says_and_waits(attempt: LayeredAttempt) -> Outcome:
        attempt.run.get_layer("a", Traced).runtime_state.count = 5
        await attempt.put_down()
        put_down.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def looks(attempt: LayeredAttempt) -> Outcome:
        return Outcome.candidate([attempt.task.attempt, attempt.run.get_layer("a", Traced).runtime_state.count])

    talk = TaskSpec(id="talk", goal="talk", worker="talks", verifier="any")
    before = LayeredWorker(Compositor([node(told, "a"), node(told, "b")]), says_and_waits)
    async with hosted(tmp_path, before.worker("talks"), anything) as dagbok:
        await dagbok.start(talk, key="one")
        await put_down.wait()
    told.log.clear()
    tenfold = kind("kind", 2, {1: lambda state: {"count": state["count"] * 10}})
    rules = ResumeRules(
        layers={"b": ResumePolicy(removed=DROP), "c": ResumePolicy(added=START_NEW)}, retired=[node(told, "b")]
    )
    after = LayeredWorker(Compositor([node(told, "c"), node(told, "a", tenfold)]), looks, resume=rules)
    async with hosted(tmp_path, after.worker("talks"), anything) as dagbok:
        result = await dagbok.run(talk, key="one")
        session = await dagbok.session(result.run, "talk")
    assert result.json()[1] == 50
    assert of_session(session.value) == {"c": ("suspended", 0), "a": ("suspended", 50)}
    assert hooks(told).count("b.delete") == 1


async def test_an_error_of_a_hook_is_told_also_where_the_session_takes_no_more() -> None:
    told = Told({"a.delete": OSError("down")})
    layered = LayeredWorker(Compositor([node(told, "a"), node(told, "b")]), counts)
    task = context()
    await layered.work(task)

    async def refuses(turn: int, keep: int, part: bytes) -> None:
        raise LookupError("over")

    task.session._put_down = refuses
    with pytest.raises(OSError, match="down") as caught:
        await layered.dispose(task)
    assert caught.value.__notes__ == ["Also, the session of the task could not be put down: over"]
