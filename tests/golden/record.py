"""Records the golden log of a format: `python -m tests.golden.record`.

Each format has a fixed history, with every event that came with it and void records. It is recorded once, when a format
is released, and never again: what was written once has to be read for ever. The file of a format that is there is not
replaced. The history of the first format stands here, the others have files of their own.
"""

from __future__ import annotations

import base64
import sys
from pathlib import Path
from typing import Final

import msgspec

from dagbok.events.envelope import Sender
from dagbok.events.run import commands as c
from dagbok.events.run.values import ArtifactItem, Candidate, Failure, Limits, SecurityContext, Usage
from dagbok.testing import OTHER_CLAIM, act, blocked, candidate, decompose, failure, pin, start, task
from tests.golden import grown, sessions
from tests.golden.files import FORMAT, log_file, state_file, state_text
from tests.support.logbuilder import LogBuilder

VERIFIERS: Final = {"check": pin(version="2.1", digest="ab12"), "judge": pin("decomposition")}
LIMITS: Final = Limits(max_attempts=2, max_lost=2, max_open=6)


def history() -> LogBuilder:
    """Two runs, with everything that can happen to one."""
    log = LogBuilder()
    _main_run(log)
    _second_run(log)
    return log


def _main_run(log: LogBuilder) -> None:
    tasks = (
        task("plan", contract={"parts": 2}, priority=3),
        task("judged", proposal_verifier="judge"),
        task("wrong"),
        task("flaky", timeout_ms=5_000),
        task("stuck"),
        task("last", depends_on=("plan", "judged", "flaky", "stuck")),
    )
    command = start(*tasks, roots=("last",), verifiers=VERIFIERS, limits=LIMITS)
    context = SecurityContext(user="ann", session="s1", permissions=("read", "write"))
    log.send("main", msgspec.structs.replace(command, context=context), id="start")
    log.deliver(log.commands[0].value)
    log.send("main", c.PauseRun(), sender=Sender("rival", "docs", "user:eve"))
    log.deliver(b"no command")
    run = log.run("main")
    log.send("main", c.StartAttempt("plan", 1, OTHER_CLAIM, reply_to="inbox-1"))
    log.void(log.records[0].value)
    log.now_ms += 20_000
    log.send("main", c.RenewLeases((c.Renewal("plan", 1, OTHER_CLAIM), c.Renewal("plan", 7, OTHER_CLAIM))))
    outcome = act.submit_outcome(run, "plan", decompose(task("left", contract={"side": "L"}), task("right")))
    log.send("main", msgspec.structs.replace(outcome, usage=Usage(tokens=7, cost="0.5")))
    _decompositions(log)
    _children(log)
    _troubles(log)
    _finish(log)


def _decompositions(log: LogBuilder) -> None:
    run = log.run("main")
    log.send("main", act.submit_outcome(run, "wrong", decompose(reuse=("nobody",))))
    log.send("main", act.submit_outcome(run, "judged", decompose(task("of-judged"), reuse=("left",))))
    log.send("main", act.submit_verdict(run, "judged", "pass"))
    log.send("main", act.submit_outcome(run, "stuck", decompose(task("no"), expected_graph_revision=1)))


def _children(log: LogBuilder) -> None:
    run = log.run("main")
    stored = ArtifactItem("scan", "cd" * 32, 4_000_000, "application/pdf")
    outcome = Candidate((*candidate({"ü": [1, 2.5, None]}).artifacts, stored), msgspec.Raw(b'{"n":1}'))
    log.send("main", act.submit_outcome(run, "left", outcome))
    fail = act.report(run, "left", "fail", diagnostics=msgspec.Raw(b'{"line":3}'))
    log.send("main", act.submit_verdict(run, "left", fail))
    log.void(b"no commit")
    log.now_ms = run.tasks["left"].due_ms
    log.send("main", act.fire_timer(run, "backoff", "left"))
    for child in ("left", "right", "of-judged"):
        log.send("main", act.submit_outcome(run, child, outcome if child == "left" else candidate(child)))
        log.send("main", act.submit_verdict(run, child, "error"))
        log.send("main", act.submit_verdict(run, child, "pass"))


def _troubles(log: LogBuilder) -> None:
    run = log.run("main")
    log.send("main", c.RejectAttempt("flaky", run.tasks["flaky"].epoch, "process-9", serves=("other",)))
    log.send("main", act.start_attempt(run, "flaky"))
    log.send("main", act.release_attempt(run, "flaky"))
    log.send("main", act.start_attempt(run, "flaky"))
    log.send("main", c.ReportGone("process-1"))
    log.send("main", act.start_attempt(run, "flaky"))
    log.now_ms = act.deadline_ms(run, "timeout", "flaky")
    log.send("main", act.fire_timer(run, "timeout", "flaky"))
    log.send("main", c.PauseRun("ä" * 9_000))
    log.send("main", c.SetLimits(msgspec.structs.replace(LIMITS, max_attempts=3, max_open=7)))
    log.now_ms = run.tasks["flaky"].due_ms
    log.send("main", c.ResumeRun("back"))
    log.send("main", act.submit_outcome(run, "stuck", blocked("no key")))


def _finish(log: LogBuilder) -> None:
    run = log.run("main")
    for id in ("flaky", "plan", "judged"):
        log.send("main", act.submit_outcome(run, id, candidate(id)))
        log.send("main", act.submit_verdict(run, id, "pass"))
    log.send("main", c.ResolveBlock("wrong"))
    log.send("main", c.ResolveBlock("stuck", "the key is there"))
    for id in ("stuck", "last"):
        log.send("main", act.submit_outcome(run, id, candidate(id)))
        log.send("main", act.submit_verdict(run, id, "pass"))


def _second_run(log: LogBuilder) -> None:
    """Fails; a third one is cancelled and a fourth stays in the middle of its work."""
    terminal = Failure("terminal", "worker_failed", "KeyError", "'x'", "Traceback …\nKeyError: 'x'")
    log.send("fails", start(task("a"), task("b"), failure_policy="fail_fast"))
    log.send("fails", act.fail_attempt(log.run("fails"), "a", terminal))
    log.send("stops", start(task("a"), task("b", depends_on=("a",))))
    log.send("stops", c.CancelRun("enough"))
    log.send("goes-on", start(task("a"), task("b"), task("c"), task("d", depends_on=("c",))))
    run = log.run("goes-on")
    log.send("goes-on", act.start_attempt(run, "a"))
    log.send("goes-on", act.submit_outcome(run, "b", candidate(1)))
    log.send("goes-on", act.fail_attempt(run, "c", failure("it broke")))


def main() -> int:
    """Write the files of the present format, unless they are there."""
    if log_file(FORMAT).exists():
        sys.stderr.write(f"{log_file(FORMAT).name} is there; a golden log is recorded once\n")
        return 1
    log = {1: history, 2: grown.history, 3: sessions.history}[FORMAT]()
    lines = [_line(record.value) + "\n" for record in log.records]
    Path(log_file(FORMAT)).write_text("".join(lines), encoding="utf-8")
    Path(state_file(FORMAT)).write_text(state_text(log.state), encoding="utf-8")
    return 0


def _line(value: bytes) -> str:
    try:
        return msgspec.json.encode({"text": value.decode()}).decode()
    except UnicodeDecodeError:
        return msgspec.json.encode({"base64": base64.b64encode(value).decode()}).decode()


if __name__ == "__main__":
    sys.exit(main())
