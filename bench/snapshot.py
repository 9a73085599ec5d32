"""What a snapshot costs: how long it holds up the owner, what it writes, and how long it takes to load.

    python bench/snapshot.py [--tasks N] [--json] [--folder FOLDER]

The real decider makes one run of N tasks (in shards of 10,000) and finishes half of them. Then:

- `first_*`: a snapshot of all of it; `next_*`: one after as many more tasks as make 16 MiB of commits. `pause_ms` is
  how long deciding stops, `write_s` how long the writing takes beside it, `mb` what it adds to the folder (10⁶ bytes).
- `load_s` and `load_rss_mb`: a fresh process loads the last snapshot; what that adds to its memory.
  `load_blocks_ms`: the longest time that the event loop of that process stood still.

The files lie in a new folder inside FOLDER (default: the current one; a RAM disk would measure nothing).
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
    from bench.support.snapshot import measure_in

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=10_000, help="number of tasks")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--folder", type=Path, default=Path(), help="where the disk is (default: here)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="snapshot-") as folder:
        figures = measure_in(Path(folder), options.tasks)
    if options.json:
        print(json.dumps(figures))
        return
    print("\n".join(f"{name:16} {value:>12,}" for name, value in figures.items()))


if __name__ == "__main__":
    main()
