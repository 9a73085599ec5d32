"""The flat curve as a picture: CPU per task from 100 to 100,000 tasks in one run, beside a peer.

    python bench/curve.py [--against lightagent] [--repeat R] [--folder FOLDER] [--svg FILE] [--from FILE]

Runs `bench/fanout.py` for each size in turn (median of R), and the peer where it can follow. Prints one JSON object and
with `--svg` draws it. `--from` draws figures that were printed before instead of measuring.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

SIZES = (100, 1_000, 10_000, 100_000)
PEER_SIZES = (100, 300, 1_000)


def main() -> None:
    """Measure or read, print, draw."""
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    from bench.support.curve import draw

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", choices=("lightagent",), help="measure a peer too")
    parser.add_argument("--repeat", type=int, default=3, help="runs to take medians of (default: 3)")
    parser.add_argument("--folder", type=Path, default=Path(), help="where the disk is (default: here)")
    parser.add_argument("--svg", type=Path, help="where to draw it")
    parser.add_argument("--from", type=Path, dest="known", help="figures that were printed before")
    options = parser.parse_args()
    figures = json.loads(options.known.read_text()) if options.known else measure(options)
    print(json.dumps(figures))
    if options.svg:
        options.svg.write_text(draw(figures))


def measure(options: argparse.Namespace) -> dict[str, list[tuple[int, float]]]:
    """By name, pairs of size and milliseconds of CPU per task."""
    figures = {"dagbok": [(size, _fanout(options, size)["cpu_ms_per_task"]) for size in SIZES]}
    if options.against:
        figures[options.against] = [
            (size, _fanout(options, size, "--against", options.against)["peer"]["cpu_ms_per_task"])
            for size in PEER_SIZES
        ]
    return figures


def _fanout(options: argparse.Namespace, size: int, *more: str) -> dict:  # type: ignore[type-arg]  # as it is printed
    program = Path(__file__).with_name("fanout.py")
    arguments = (
        "--tasks",
        str(size),
        "--repeat",
        str(options.repeat),
        "--folder",
        str(options.folder),
        "--json",
        *more,
    )
    done = subprocess.run((sys.executable, str(program), *arguments), stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


if __name__ == "__main__":
    main()
