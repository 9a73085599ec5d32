"""What entering and leaving layers costs: 5, 50 and 500 of them, in µs per layer.

    python bench/layers.py [--repeat N] [--json]

- `idle`: no hook, config, state or resource. `config`: with a config. `state`: with a state model, suspended.
- `hooks`: with all four hooks, doing nothing. `resource`: with a resource too.

Each figure is the best and the median of N entries after a warm-up, garbage collection included.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path


def main() -> None:
    """Measure once and print."""
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    from bench.support.layers import measure

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=200, help="entries for each figure")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    figures = measure(options.repeat)
    if options.json:
        print(json.dumps(figures))
        return
    print(f"{'µs per layer':16} {'best':>8} {'median':>8}")
    for name, (best, median) in figures.items():
        print(f"{name:16} {best:>8.2f} {median:>8.2f}")


if __name__ == "__main__":
    main()
