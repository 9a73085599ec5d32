"""Given, when, then: see what a run makes of the answers of your agents, without a log, a process or a clock.

A history is given, a command is tried, and the events it causes are compared. Nothing runs and nothing waits: what
decides here is the code that decides in production.

>>> from dagbok.testing import Code, candidate, decompose, given, like, run_of, start, task, when
>>> from dagbok.events.run.commands import PauseRun
>>> from dagbok.events.run.events import *
>>> def plan():                                   # what your worker returns
...     return decompose(task("left"), task("right", depends_on=("left",)))

Does the graph take it, and what runs first?

>>> planned = run_of(task("root")).starts("root").submits("root", plan()).then(
...     like(DecompositionAccepted, new=("left", "right")),
...     TasksAdded,
...     like(AttemptOpened, task="left", phase="solve"),
... )
>>> left_done = planned.starts("left").submits("left", candidate({"lines": 3})).judges("left", "pass").then(
...     VerdictRecorded, like(TaskVerified, task="left"), like(AttemptOpened, task="right")
... ).then_task("root", status="waiting", open_deps=1)

A refusal is a result like any other, and a history is a value: this one goes on from `planned` in another way.

>>> refused = planned.when(PauseRun("lunch")).when(PauseRun("again")).then_refused(Code.VERSION_CONFLICT)

When something else comes than was expected, the difference is shown:

>>> planned.starts("left").then(like(AttemptStarted, task="right"))
Traceback (most recent call last):
AssertionError: other events than expected (- expected, + came):
  AttemptStarted
-     task = "right"
+     task = "left"
+     epoch = 1
+     claim = ["process-1",1,"nonce-1"]
+     lease_until_ms = 60000

Edges may have conditions:

>>> reviewed = run_of(task("review"), task("ship", depends_on=("review",), when=(when("review", "/ok", True),)))
>>> refused = reviewed.starts("review").submits("review", candidate(outputs={"ok": False}))
>>> skipped = refused.judges("review", "pass").then(
...     VerdictRecorded, like(TaskVerified, not_taken=("ship",)), TaskSkipped("ship"), RunSucceeded
... ).then_task("ship", status="skipped").then_state(status="succeeded")

`given(*events)` begins with events, `run_of(*tasks)` with a run that was started. `when` tries any command; `starts`,
`submits`, `judges`, `fails`, `releases` and `fires` try one with the present epoch, claim and input filled in;
`resolves`, `retries`, `supersedes`, `cancels` and `amends` try what a person asks. `act` makes the commands of agents
alone, to change something in them.

Your functions themselves, one at a time and with nothing around them: `context` makes what a worker is handed,
`candidate_of` what a verifier is handed; both are the real thing. `outcome_of` and `verdict_of` call the functions,
async or not, and refuse an answer that a run would refuse.

>>> from dagbok import Candidate, Outcome, TaskContext, Verdict, verifier, worker
>>> from dagbok.testing import candidate_of, context, outcome_of, verdict_of
>>> @worker("add")
... async def add(task: TaskContext) -> Outcome:
...     task.use(tokens=7)
...     return Outcome.candidate(sum(task.inputs) + task.dependencies["before"].json())
>>> @verifier("exact", version="1")
... def exact(candidate: Candidate, task: TaskContext) -> Verdict | bool:
...     return candidate.json() == 10 or Verdict.failed("it is not ten")
>>> handed = context(inputs=[1, 2, 3], dependencies={"before": 4}, diagnostics="it was not ten")
>>> verdict_of(exact, candidate_of(outcome_of(add, handed)), handed).verdict, handed.used.tokens, handed.attempt
('pass', 7, 2)

How your workers and verifiers do while processes die, clocks jump and the network loses what it carries, `simulate`
tells: it runs everything there is in one process, in virtual time. See `dagbok.testing.simulation`.
"""

from typing import TYPE_CHECKING

from dagbok.events.codes import Code
from dagbok.events.envelope import Problem
from dagbok.events.run.values import Limits, TaskLimits, Usage
from dagbok.testing import act
from dagbok.testing.called import outcome_of, verdict_of
from dagbok.testing.make import (
    CHECK,
    CLAIM,
    OTHER_CLAIM,
    blocked,
    candidate,
    decompose,
    failure,
    pin,
    start,
    task,
    when,
)
from dagbok.testing.match import Expected, Like, like
from dagbok.testing.offered import candidate_of, context
from dagbok.testing.spec import Scenario, given, run_of

if TYPE_CHECKING:
    from dagbok.testing.simulation import NO_FAULTS, Faults, Simulated, SimulationFailed, simulate

__all__ = [
    "CHECK",
    "CLAIM",
    "NO_FAULTS",
    "OTHER_CLAIM",
    "Code",
    "Expected",
    "Faults",
    "Like",
    "Limits",
    "Problem",
    "Scenario",
    "Simulated",
    "SimulationFailed",
    "TaskLimits",
    "Usage",
    "act",
    "blocked",
    "candidate",
    "candidate_of",
    "context",
    "decompose",
    "failure",
    "given",
    "like",
    "outcome_of",
    "pin",
    "run_of",
    "simulate",
    "start",
    "task",
    "verdict_of",
    "when",
]


def __getattr__(name: str) -> object:
    """The simulation imports all of dagbok: only for those who use it."""
    if name in ("NO_FAULTS", "Faults", "Simulated", "SimulationFailed", "simulate"):
        from dagbok.testing import simulation

        return getattr(simulation, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
