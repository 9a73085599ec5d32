"""What entering and leaving layers costs, and going on with a long history.

    python bench/layers.py [--repeat N] [--history MESSAGES] [--json]

Layers: 5, 50 and 500 of them, in µs per layer.

- `idle`: no hook, config, state or resource. `config`: with a config. `state`: with a state model, suspended.
- `hooks`: with all four hooks, doing nothing. `resource`: with a resource too.

Each figure is the best and the median of N entries after a warm-up, garbage collection included.

With `--history`: a `LayeredWorker` resumes a conversation of Pydantic AI with so many messages (0.7 kB of JSON each),
appends two and puts them down, once by `put_down` and once at its end; all of an attempt between the bytes of the
session and the bytes that go to the log, without store and log. Beside it, in the same run: validate the whole history
from JSON with the adapter of Pydantic AI, append two, write the whole; also from bytes to bytes. In ms.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path


def main() -> None:
    """Measure once and print."""
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    from bench.support import history
    from bench.support.layers import measure

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=200, help="entries for each figure")
    parser.add_argument("--history", type=int, metavar="MESSAGES", help="measure a conversation instead")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    if options.history:
        times, sizes = history.measure(options.history, options.repeat)
        _print_history(times, sizes, as_json=options.json)
        return
    figures = measure(options.repeat)
    if options.json:
        print(json.dumps(figures))
        return
    print(f"{'µs per layer':16} {'best':>8} {'median':>8}")
    for name, (best, median) in figures.items():
        print(f"{name:16} {best:>8.2f} {median:>8.2f}")


def _print_history(times: dict[str, tuple[float, float]], sizes: dict[str, int], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"ms": times, "sizes": sizes}))
        return
    whole = next(iter(times.values()))
    print(f"{'ms':40} {'best':>8} {'median':>8} {'times as fast':>20}")
    for name, (best, median) in times.items():
        print(f"{name:40} {best:>8.2f} {median:>8.2f} {whole[0] / best:>9.1f} {whole[1] / median:>10.1f}")
    print(", ".join(f"{name}: {size}" for name, size in sizes.items()))


if __name__ == "__main__":
    main()
