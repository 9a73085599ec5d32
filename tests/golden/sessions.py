"""The history of the third golden log: sessions that are put down, gone on with, and forked, and
commands that are lost."""

from __future__ import annotations

import msgspec

from dagbok.events.run.values import ArtifactItem, SessionSeed
from dagbok.testing import OTHER_CLAIM, act, candidate, failure, start, task
from tests.support.logbuilder import LogBuilder


def history() -> LogBuilder:
    """A run whose worker fails between two turns, and one whose task begins with what it had put down."""
    log = LogBuilder()
    log.send("talks", start(task("a"), task("b", depends_on=("a",))))
    _talks(log)
    log.lose(3)
    log.void(log.records[1].value)
    _forked(log)
    return log


def _talks(log: LogBuilder) -> None:
    log.send("talks", act.start_attempt(log.run("talks"), "a"))
    log.send("talks", act.suspend_session(log.run("talks"), "a", b'{"v":1,"ops":[["put",[],{"turns":["one"]}]]}'))
    log.send("talks", act.suspend_session(log.run("talks"), "a", b'{"v":1,"ops":[["add",["turns"],["two"]]]}', keep=1))
    log.send("talks", act.suspend_session(log.run("talks"), "a", b"late", turn=2))
    log.send("talks", act.fail_attempt(log.run("talks"), "a", failure("it broke")))
    log.now_ms = log.run("talks").tasks["a"].due_ms
    log.send("talks", act.fire_timer(log.run("talks"), "backoff", "a"))
    log.send("talks", act.start_attempt(log.run("talks"), "a", claim=OTHER_CLAIM))
    large = ArtifactItem("session", "ab" * 32, 90_000, "application/json")
    command = act.suspend_session(log.run("talks"), "a", b"x", keep=1)
    log.send("talks", msgspec.structs.replace(command, part=large))
    log.send("talks", act.submit_outcome(log.run("talks"), "a", candidate("a")))


def _forked(log: LogBuilder) -> None:
    session = log.run("talks").tasks["a"].session
    assert session is not None
    seed = SessionSeed("talks", "a", session.turn, session.digest, "cd" * 32, 90_500)
    log.send("forked", start(msgspec.structs.replace(task("c"), session=seed)))
    log.send("forked", act.start_attempt(log.run("forked"), "c"))
    log.send("forked", act.suspend_session(log.run("forked"), "c", b'{"v":1,"ops":[["cut",["turns"],1]]}', keep=1))
