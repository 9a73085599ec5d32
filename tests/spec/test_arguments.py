"""Arguments that Python would take, and that mean nothing here, are refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dagbok import Code, Outcome, Retry, worker
from dagbok.events.errors import InvalidInput
from dagbok.testing import context, outcome_of, simulate
from tests.support.hosts import hosted


@worker("echo")
def echo(task: object) -> Outcome:
    return Outcome.candidate(None)


def test_seconds_are_a_number() -> None:
    for after_s in ("30", None, True, -1, float("nan")):
        with pytest.raises(InvalidInput, match="after_s of Retry") as refused:
            Retry("slow down", after_s=after_s)  # type: ignore[arg-type]
        assert refused.value.code is Code.USAGE
    assert (Retry(after_s=0).after_s, Retry(after_s=0.5).after_s) == (0, 0.5)


@pytest.mark.parametrize(
    "named",
    [{"attempt": 0}, {"attempt": -3}, {"attempt": True}, {"phase": "x"}, {"epoch": 0}, {"dependencies": [1]}],
    ids=str,
)
def test_a_context_is_one_that_a_run_could_hand_out(named: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(named))) as refused:
        context(**named)
    assert refused.value.code is Code.USAGE


def test_what_is_called_is_a_worker_and_something_is_simulated() -> None:
    for call in (lambda: outcome_of(echo.function, context()), lambda: simulate([], echo)):  # type: ignore[arg-type]
        with pytest.raises(InvalidInput) as refused:
            call()
        assert refused.value.code is Code.USAGE


async def test_a_page_has_one_run_at_least_and_a_tenant_is_an_id(tmp_path: Path) -> None:
    async with hosted(tmp_path) as dagbok:
        for limit in (0, -1, True, "5"):
            with pytest.raises(InvalidInput, match="limit cannot be"):
                await dagbok.list_runs(limit=limit)  # type: ignore[arg-type]
        for call in (dagbok.list_runs(tenant="../x"), dagbok.wait("r", tenant="../x"), dagbok.pause("r", project="")):
            with pytest.raises(InvalidInput) as refused:
                await call
            assert refused.value.code is Code.INVALID_SPEC
