"""The main job on Kafka, over three worker processes, one of which is killed in the middle.

    python bench/demo_kafka.py [--input FOLDER] [--pace SECONDS] [--session SECONDS] [--data FOLDER]

Starts a broker unless `KAFKA_BOOTSTRAP_SERVERS` names one (`tests/servers/kafka.py`), a scheduler and three workers;
submits `examples/docs_audit.py`; kills a worker with SIGKILL when a third of the files is done; waits until the run has
succeeded; and compares what the log says with what was promised. The report lies in FOLDER/output/RUN then. The exit
status is 1 when anything is not as it should be.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> int:
    """Run as a script, only this folder is where modules are looked for: make it the one above."""
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    from bench.support.kafka_demo import main as play

    return play(__doc__)


if __name__ == "__main__":
    sys.exit(main())
