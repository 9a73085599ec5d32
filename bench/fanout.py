"""How fast dagbok is: root → N no-op children → integrate, each verified, on a fresh log on the disk.

    python bench/fanout.py [--tasks N] [--repeat R] [--log kafka] [--against lightagent] [--json] [--folder FOLDER]

Everything is switched on as `Dagbok.embedded` has it: SQLite with `synchronous=FULL`, snapshots, the projector process.
With `--log kafka` it is one process with every role but the projector, on a real broker, which is started here unless
one is named (`tests/servers/kafka.py`).
Above 10,000 the root decomposes into shards, which decompose and integrate themselves. Every repeat is a fresh process
with a fresh folder inside FOLDER (default: the current one; a RAM disk would measure nothing); figures are medians.
`docs/performance.md` says what each figure means. With `--json` the last line is one JSON object.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    """Run as a script, only this folder is where modules are looked for: make it the one above."""
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    from bench.support.fanout import main as measure

    measure()


if __name__ == "__main__":
    main()
