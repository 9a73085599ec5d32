"""Workers and verifiers called as a worker process calls them, one at a time and with no run around them."""

from __future__ import annotations

import asyncio

import orjson

from dagbok.agents.workers.calls import Calls
from dagbok.agents.workers.context import Candidate, TaskContext
from dagbok.agents.workers.definitions import Verifier, Worker
from dagbok.agents.workers.encode import encode_outcome, encode_report
from dagbok.events.arguments import typed
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput
from dagbok.events.specs import Outcome, TaskSpec, Verdict
from dagbok.testing.make import CHECK
from dagbok.testing.offered import Memory, dispatch_of

_ANY = TaskSpec(goal="do it", worker="work", verifier=CHECK)


def outcome_of(worker: Worker, task: TaskContext) -> Outcome:
    """What the worker makes of the task: an async function on an event loop of its own, a sync one in a thread, as in a
    run. For plain test functions; in an async one, await the worker itself.

    Raises whatever the worker raises; `InvalidInput` (`invalid_outcome`, `invalid_spec`) for an answer that would fail
    the attempt, and (`usage`) for arguments of another kind and within a running event loop.
    """
    typed("worker", worker, Worker)
    answer = _called(worker, typed("task", task, TaskContext))
    encode_outcome(answer, "test", dispatch_of(_ANY, task.task_id), Memory().put)
    assert isinstance(answer, Outcome)  # else encoding has refused it
    return answer


def verdict_of(verifier: Verifier, candidate: Candidate, task: TaskContext) -> Verdict:
    """What the verifier says of the candidate (see `candidate_of`), as a `Verdict`, also when it says true or false.

    Raises whatever the verifier raises; `InvalidInput` (`invalid_outcome`) for an answer that is no verdict, and
    (`usage`) for arguments of another kind and within a running event loop. `timeout_s` of the
    verifier is not observed.
    """
    typed("verifier", verifier, Verifier)
    typed("candidate", candidate, Candidate)
    typed("task", task, TaskContext)
    report = encode_report(_called(verifier, candidate, task), dispatch_of(_ANY, task.task_id), verifier.pin)
    return Verdict(
        verdict=report.verdict,
        diagnostics=orjson.loads(bytes(report.diagnostics)),
        evidence=orjson.loads(bytes(report.evidence)),
    )


def _called(definition: Worker | Verifier, *arguments: object) -> object:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        advice = "call and await it yourself in an async test"
        raise InvalidInput(f"{definition.key} is called within an event loop", code=Code.USAGE, advice=advice)
    calls = Calls()
    try:
        return asyncio.run(calls.call(definition, *arguments))
    finally:
        calls.close()
