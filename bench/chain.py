"""What one task of a chain costs: N tasks, each waiting for the one before, on a fresh log on the disk.

    python bench/chain.py [--tasks N] [--repeat R] [--json] [--folder FOLDER]

Nothing can be grouped here: every task waits for the durable commits of the one before. A chain is run R times; between
the runs bare SQLite commits are timed on the same disk, and the ratio is of medians of this one call.

- `p50_ms`, `p99_ms`: from one call of the worker to that of the next task: outcome, review, verdict and dispatch.
- `raw_p50_ms`: one bare SQLite commit of 600 bytes (WAL, `synchronous=FULL`).
- `transactions_per_task`: COMMITs of the log while the chain ran, counted by SQLite's trace in a run of its own.
- `ratio`: `p50_ms` over that many raw commits.
- `cpu_ms_per_task`: of this process.

The files lie in a new folder inside FOLDER (default: the current one; a RAM disk would measure nothing).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path


def main() -> None:
    """Measure and print."""
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    from bench.support.chain import measure

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=100, help="tasks in the chain (default: 100)")
    parser.add_argument("--repeat", type=int, default=5, help="chains to take medians of (default: 5)")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--folder", type=Path, default=Path(), help="where the disk is (default: here)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="chain-") as folder:
        figures = measure(Path(folder), options.tasks, options.repeat)
    if options.json:
        print(json.dumps(figures))
        return
    print("\n".join(f"{name:22} {value:>10,.3f}" for name, value in figures.items()))


if __name__ == "__main__":
    main()
