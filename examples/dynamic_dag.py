"""A graph that grows at run time, and a mistake that never gets published.

    python examples/dynamic_dag.py          # keeps its log in ./dagbok-data, or in $DAGBOK_DATA
    dagbok run examples/dynamic_dag.py

`root` decomposes into `analysis` and `summary`, which run side by side. The first candidate of `analysis` is wrong: its
verifier says why, and the second attempt mends it. Then `root` runs again and integrates what both have published.
"""

from __future__ import annotations

import asyncio
import os

from dagbok import Candidate, Dagbok, Outcome, TaskContext, TaskSpec, Verdict, verifier, worker
from dagbok.logs import configure

SALES = [12, 7, 31, 5]
TASKS = ("root", "analysis", "summary")


def main() -> TaskSpec:
    """Report on the sales of four weeks."""
    return TaskSpec(id="root", goal="report on the sales", worker="report", verifier="check-report")


@worker("report", pure=True)
async def report(task: TaskContext) -> Outcome:
    """Plan first; when the parts are verified, put them together."""
    if task.phase == "integrate":
        parts = {part: results.json() for part, results in task.dependencies.items()}
        return Outcome.candidate({"root": {"parts": len(parts), "attempt": task.attempt}, **parts})
    return Outcome.decompose(
        [
            TaskSpec(id="analysis", goal="add up the sales", worker="add", verifier="check-sum"),
            TaskSpec(id="summary", goal="name the best week", worker="best", verifier="check-best"),
        ],
        rationale="neither needs the other",
    )


@worker("add", pure=True)
async def add(task: TaskContext) -> Outcome:
    """Forgets the last week, until a verifier has said so."""
    weeks = SALES if task.diagnostics else SALES[:-1]
    return Outcome.candidate({"total": sum(weeks), "told": task.diagnostics, "attempt": task.attempt})


@worker("best", pure=True)
async def best(task: TaskContext) -> Outcome:
    """The week with the largest sales, counted from 1."""
    return Outcome.candidate({"week": SALES.index(max(SALES)) + 1, "attempt": task.attempt})


@verifier("check-sum", version="1")
def check_sum(candidate: Candidate, task: TaskContext) -> Verdict:
    """A total is right when nothing is left of it after every week is taken away."""
    match candidate.json():
        case {"total": int(rest)}:
            for sales in SALES:
                rest -= sales
            return Verdict.passed() if rest == 0 else Verdict.failed({"off_by": rest})
    return Verdict.failed("there is no total")


@verifier("check-best", version="1")
def check_best(candidate: Candidate, task: TaskContext) -> bool:
    """No week has more."""
    match candidate.json():
        case {"week": int(week)} if 1 <= week <= len(SALES):
            return all(sales <= SALES[week - 1] for sales in SALES)
    return False


@verifier("check-report", version="1")
def check_report(candidate: Candidate, task: TaskContext) -> bool:
    """The report says of each part what the part has published."""
    match candidate.json():
        case {"root": {"parts": 2}, "analysis": analysis, "summary": summary}:
            published = {part: results.json() for part, results in task.dependencies.items()}
            return published == {"analysis": analysis, "summary": summary}
    return False


async def demo(folder: str) -> None:
    """Run it; with the same folder, the same key names the same run, and nothing is done again."""
    configure("warning")
    definitions = (report, add, best, check_sum, check_best, check_report)
    async with Dagbok.embedded(folder, *definitions) as dagbok:
        result = await dagbok.run(main(), key="offline-demo")
        print(f"offline-demo {result.status}: {dict(result.counts)}")
        if result.counts.get("verified") != len(TASKS):
            raise SystemExit(1)
        match result.json():
            case dict(said):
                for task in TASKS:
                    print(f"{task:8} verified {said.get(task)}")


if __name__ == "__main__":
    asyncio.run(demo(os.environ.get("DAGBOK_DATA", "dagbok-data")))
