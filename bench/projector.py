"""How fast the projector is: a log of N tasks, each with a candidate and a passing verdict, into fresh tables.

    python bench/projector.py [--tasks N] [--postgres | --database URL] [--json] [--profile]

Into SQLite; with `--postgres` into the system's PostgreSQL, started here with fsync on; or into the database of a URL,
in a schema that is made for it and dropped. The log is made by the real decider and kept in memory, so that nothing but
the projector is measured. `cpu_ms_per_task` is the time of the whole process while it catches up, the reading of the
log included; `server_cpu_ms_per_task` that of the processes of a server that was started here.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    """Run as a script, only this folder is where modules are looked for: make it the one above."""
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    from bench.support.projector import main as measure

    measure(__doc__)


if __name__ == "__main__":
    main()
