"""`show`: branches, repair and budgets, and how text looks on a terminal."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
import sqlalchemy as sa

from dagbok.agents.hosting.folder import DataFolder
from dagbok.cli.text import faint, size
from dagbok.cli.wiring import open_log
from dagbok.events.log.port import COMMANDS, Record
from dagbok.events.run.commands import CancelTask, FireTimer, SupersedeTask
from dagbok.events.run.values import Limits, TaskLimits, Usage
from dagbok.testing import act
from dagbok.testing.make import candidate, start, task, when
from tests.cli.conftest import Call
from tests.cli.programs import Program
from tests.support.logbuilder import LogBuilder

WHOSE = ("--tenant", "acme", "--project", "docs")
RUN = "run-1"


def written(builder: LogBuilder, folder: Path) -> list[str]:
    """What a builder has written, as the log of a data folder: the options that look at it."""
    data = DataFolder(folder / "data")
    data.root.mkdir()

    async def write() -> None:
        log = open_log(data)
        await log.append(COMMANDS, 0, [Record(one.key, one.value) for one in builder.commands])
        await builder.append_to(log)
        await log.close()

    asyncio.run(write())
    return ["--data", str(data.root), *WHOSE]


def branched() -> LogBuilder:
    """`rework` was skipped, `draft` superseded, `aside` cancelled, and `publish` goes on."""
    builder = LogBuilder()
    builder.send(
        RUN,
        start(
            task("draft"),
            task("review", depends_on=("draft",)),
            task("publish", depends_on=("review",), when=(when("review", "/decision", "approve"),)),
            task("rework", depends_on=("review",), when=(when("review", "/decision", "reject"),)),
            task("aside"),
        ),
    )
    builder.send(RUN, SupersedeTask("draft", task("draft-2")))
    builder.send(RUN, CancelTask("aside", "not needed"))
    for id in ("draft-2", "review"):
        told = candidate("done", outputs={"decision": "approve"})
        builder.send(RUN, act.submit_outcome(builder.run(RUN), id, told, usage=Usage(1_200, "0.30")))
        builder.send(RUN, act.submit_verdict(builder.run(RUN), id, "pass"))
    return builder


def test_branches_conditions_and_what_took_whose_place_are_shown(call: Call, tmp_path: Path) -> None:
    said = call("show", RUN, *written(branched(), tmp_path))
    assert said.out.splitlines()[1] == "  tokens 2,400, cost 0.6"
    lines = {line.split()[0]: line for line in said.out.splitlines() if line}
    assert lines["publish"].endswith("when review.decision = approve")
    assert lines["rework"] == "rework  skipped  do it  when review.decision = reject (not so)"
    assert lines["draft"].startswith("draft  superseded → draft-2  1 attempt")
    assert lines["aside"].endswith("— task_cancelled: not needed")
    assert "1,200 tokens, cost 0.3" in lines["review"]


def test_a_run_as_json_has_conditions_replacements_and_what_was_used(call: Call, tmp_path: Path) -> None:
    told = call("show", RUN, *written(branched(), tmp_path), "--json").json
    tasks = {row["task"]: row for row in told["tasks"]}
    assert tasks["draft"]["superseded_by"] == "draft-2"
    assert (tasks["aside"]["code"], tasks["rework"]["status"]) == ("task_cancelled", "skipped")
    states = {row["task"]: (row["dependency"], row["condition"], row["state"]) for row in told["edges"]}
    assert states["rework"] == ("review", ".decision = reject", "not_taken")
    assert states["review"] == ("draft-2", None, "taken")
    assert (told["run"]["tokens_used"], told["run"]["cost_used"]) == (2_400, "0.6")


def spending(limits: Limits, wanted: TaskLimits | None = None) -> LogBuilder:
    """A task used 1,200 tokens at 0.30; another one waits for it."""
    builder = LogBuilder()
    builder.send(RUN, start(task("one"), task("two", depends_on=("one",), limits=wanted), limits=limits))
    told = act.submit_outcome(builder.run(RUN), "one", candidate("done"), usage=Usage(1_200, "0.30"))
    builder.send(RUN, told)
    builder.send(RUN, act.submit_verdict(builder.run(RUN), "one", "pass"))
    return builder


def test_what_a_run_used_stands_beside_its_limits(call: Call, tmp_path: Path) -> None:
    limits = Limits(max_tokens=5_000, max_cost="2.50", max_total_artifact_bytes=2**20)
    said = call("show", RUN, *written(spending(limits, TaskLimits(tokens=300, cost="0.05")), tmp_path))
    budget = "tokens 1,200 of 5,000 (300 reserved), cost 0.3 of 2.5 (0.05 reserved), artifacts 6 B of 1.0 MiB"
    assert said.out.splitlines()[1] == f"  {budget}"


@pytest.mark.parametrize(
    ("limits", "wanted", "advice"),
    [
        (Limits(max_tokens=1_200), None, "out of tokens; to go on: dagbok limits run-1 max_tokens=2400"),
        (
            Limits(max_tokens=1_300),
            TaskLimits(tokens=2_000),
            "out of tokens: task two reserves 2,000; to go on: dagbok limits run-1 max_tokens=3200",
        ),
        (Limits(max_cost="0.3"), None, "out of cost; to go on: dagbok limits run-1 max_cost=0.6"),
        (
            Limits(max_cost="0.5"),
            TaskLimits(cost="0.25"),
            "out of cost: task two reserves 0.25; to go on: dagbok limits run-1 max_cost=0.8",
        ),
    ],
)
def test_a_run_out_of_budget_is_shown_with_the_command_that_raises_it(
    call: Call, tmp_path: Path, limits: Limits, wanted: TaskLimits | None, advice: str
) -> None:
    options = written(spending(limits, wanted), tmp_path)
    said = call("show", RUN, *options)
    assert "  blocked: budget_exhausted" in said.out.splitlines()
    (line,) = [line for line in said.out.splitlines() if line.startswith(advice)]
    assert call(*line.split("dagbok ")[-1].split()).status == 0
    assert call("show", RUN, *options, "--json").json["run"]["status"] == "running"


def test_a_run_out_of_time_is_shown_with_the_command_that_gives_it_more(call: Call, tmp_path: Path) -> None:
    builder = spending(Limits(max_wall_ms=1_000))
    builder.now_ms += 1_000
    builder.send(RUN, FireTimer("wall", "", 0, builder.now_ms))
    said = call("show", RUN, *written(builder, tmp_path))
    (advice,) = [line for line in said.out.splitlines() if "wall time;" in line]
    assert re.fullmatch(r"out of wall time; to go on: dagbok limits run-1 max_wall_ms=\d+ --data .*", advice)


def test_tables_of_an_older_dagbok_are_built_again_with_a_word_to_who_waits(call: Call, copied: Program) -> None:
    before = call(*copied.look("ls", "--json"))
    engine = sa.create_engine(f"sqlite:///{copied.data / 'tables.db'}")
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE views SET layout = 0 WHERE view = 'graph'")
    engine.dispose()
    after = call(*copied.look("ls", "--json"))
    assert "building them again from the log" in after.err
    assert (after.json, before.err) == (before.json, "")
    assert call(*copied.look("ls")).err == ""


def test_what_is_settled_is_dim_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert faint("skipped") == "skipped"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert faint("skipped") == "\x1b[2mskipped\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert faint("skipped") == "skipped"


@pytest.mark.parametrize(
    ("size_bytes", "text"), [(0, "0 B"), (1_023, "1023 B"), (1_536, "1.5 KiB"), (2**20, "1.0 MiB"), (2**31, "2.0 GiB")]
)
def test_sizes_read_as_text(size_bytes: int, text: str) -> None:
    assert size(size_bytes) == text
