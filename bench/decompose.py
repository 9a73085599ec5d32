"""What one large decomposition holds up: N children in one commit, while other attempts live by their heartbeats.

    python bench/decompose.py [--tasks N] [--repeat R] [--json] [--folder FOLDER]

Ten claimed attempts of another run hold short leases (1 s, renewed every third of it) from before the decomposition
until after its children are there; if one of them is ever lost, the figures are worth nothing and the program fails.

- `accept_ms`: from the call that returns the decomposition until the worker of the first child is called.
- `longest_block_ms`: how late the event loop came to a timer at most meanwhile.
- `renewals`: how many renewals were accepted meanwhile; `lost`: leases that ran out (none).
- `bytes_per_child`: of the commit as it is stored. `raw_commit_p50_ms`: one bare SQLite commit on this disk.

Medians of R runs, each in a fresh folder inside FOLDER (default: the current one).
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
    from bench.support.decompose import measure

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=10_000, help="children in one decomposition (default: 10,000)")
    parser.add_argument("--repeat", type=int, default=5, help="runs to take medians of (default: 5)")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--folder", type=Path, default=Path(), help="where the disk is (default: here)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="decompose-") as folder:
        figures = measure(Path(folder), options.tasks, options.repeat)
    if options.json:
        print(json.dumps(figures))
        return
    print("\n".join(f"{name:20} {value:>12,.2f}" for name, value in figures.items()))


if __name__ == "__main__":
    main()
