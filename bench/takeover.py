"""How long a partition on Kafka stands still when its owner is killed.

    python bench/takeover.py [--tasks N] [--repeats R] [--session SECONDS] [--folder FOLDER] [--json]

Two processes, `dagbok scheduler`, on a real broker, which is started here unless one is named
(`tests/servers/kafka.py`), and topics with one partition: one of the two decides, the other stands by. N tasks are at
work, each with a claimed attempt, in runs of 1,000. Then who decides gets a SIGKILL, a command is sent, and the clock
runs until the commit of the other one that answers it can be read. Every repeat has topics, processes and a folder of
its own; figures are medians. With `--json` the last line is one JSON object.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    """Run as a script, only this folder is where modules are looked for: make it the one above."""
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    from bench.support.takeover import main as measure

    measure(__doc__)


if __name__ == "__main__":
    main()
