"""How fast a partition is recovered: folded from nothing, and from a snapshot.

    python bench/replay.py [--events N] [--snapshot-tasks M] [--json] [--folder FOLDER]

The real decider writes a log of at least N events (a fan-out: shards, children, verdicts) into SQLite. Then fresh
processes recover it as an owner does (`agents/scheduler/recover.py`):

- `events_per_s`, `fold_s`, `fold_rss_mb`: from offset 0, all seals checked and all bodies decoded.
- `verify_events_per_s`: the same, but only the rule is checked and nothing is decoded.
- `snapshot_load_s`: M tasks, half of them verified, from a snapshot (`bench/snapshot.py` has more of it).

The files lie in a new folder inside FOLDER (default: the current one).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path


def main() -> None:
    """Measure once and print."""
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    from bench.support.replay import measure

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=200_000, help="at least so many (default: 200,000)")
    parser.add_argument("--snapshot-tasks", type=int, default=100_000, help="tasks in the snapshot (default: 100,000)")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--folder", type=Path, default=Path(), help="where the disk is (default: here)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="replay-") as folder:
        figures = measure(Path(folder), options.events, options.snapshot_tasks)
    if options.json:
        print(json.dumps(figures))
        return
    print("\n".join(f"{name:20} {value:>14,.2f}" for name, value in figures.items()))


if __name__ == "__main__":
    main()
