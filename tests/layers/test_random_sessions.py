"""The same of sessions in the log of a run: attempts that fail are followed by others, until one gets through."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from hypothesis import event, given

from dagbok import Outcome
from dagbok.agents.layers.durable import LayeredAttempt, LayeredWorker, session_snapshot
from dagbok.agents.workers.terminal import Terminal
from dagbok.testing import context
from tests.layers.parts import Traced
from tests.layers.test_random_topologies import Case, cases, deleted_in, suspended_in

ATTEMPTS = 3
"""One step fails in the first attempt, perhaps another in the second."""


async def number(attempt: LayeredAttempt) -> Outcome:
    """Give each layer a number of its own."""
    for count, name in enumerate(attempt.run.slots, 1):
        attempt.run.get_layer(name, Traced).runtime_state.count = count
    return Outcome.candidate(None)


async def look(attempt: LayeredAttempt) -> Outcome:
    return Outcome.candidate(
        [attempt.run.get_layer(name, Traced).runtime_state.count for name in attempt.run.slots]
    )


async def first_session(case: Case) -> Any:
    task = context()
    await LayeredWorker(case.plan(case.before), number).work(task)
    case.told.log.clear()
    case.told.deleted.clear()
    return task.session.load()


@given(cases())
def test_a_session_of_a_changed_graph_loses_nothing_over_failed_attempts(case: Case) -> None:
    asyncio.run(check_attempts(case))


async def check_attempts(case: Case) -> None:
    case.cancelled = False  # what is cancelled is left as it was put down: there a hook runs at least once
    session = await first_session(case)
    all_of_it = suspended_in(session_snapshot(session))
    layered = LayeredWorker(case.plan(case.after), look, resume=case.rules())
    case.told.fails = case.errors()
    for attempt in range(ATTEMPTS):
        task = context(session=session)
        try:
            outcome = await layered.work(task)
        except (Terminal, ValueError):
            event("refused")
            assert (case.told.log, task.session.load()) == ([], session)
            return
        except Exception:
            session, case.told.fails = task.session.load(), dict(list(case.told.fails.items())[1:])
            assert suspended_in(session_snapshot(session)) + deleted_in(case.told) == all_of_it
            continue
        event(f"attempt {attempt + 1}")
        counts: Any = outcome.artifacts["result"].content
        assert Counter(count for count in counts if count) + deleted_in(case.told) == all_of_it
        assert suspended_in(session_snapshot(task.session.load())) + deleted_in(case.told) == all_of_it
        return
    raise AssertionError("no attempt got through")


@given(cases())
def test_a_disposal_of_a_session_deletes_each_layer_once_over_failed_attempts(case: Case) -> None:
    asyncio.run(check_disposals(case))


async def check_disposals(case: Case) -> None:
    case.cancelled = False  # what is cancelled is left as it was put down: there a hook runs at least once
    session = await first_session(case)
    all_of_it = suspended_in(session_snapshot(session))
    layered = LayeredWorker(case.plan(case.before), look)
    case.told.fails = case.errors()
    for _ in range(ATTEMPTS):
        task = context(session=session)
        try:
            await layered.dispose(task)
        except Exception:
            case.told.fails = dict(list(case.told.fails.items())[1:])
        session = task.session.load()
        assert suspended_in(session_snapshot(session)) + deleted_in(case.told) == all_of_it
    assert deleted_in(case.told) == all_of_it
