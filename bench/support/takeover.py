"""The program behind `bench/takeover.py`: options, repeats, medians."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final

import msgspec

from bench.support.one_takeover import Takeover, measure

MEANINGS: Final = {
    "takeover_s": "from the SIGKILL to the first commit of the new owner, s",
    "behind_session_s": "… less the session timeout, s",
    "assigned_s": "from the SIGKILL until the group has given the partition to the new owner, s",
    "fold_s": "from then until it owns it, the log folded and nothing lost, s",
    "first_commit_s": "from then until the commit can be read, s",
    "events": "records of the partition that were folded",
}


class Options(argparse.Namespace):
    """The command line."""

    tasks: int
    repeats: int
    session: float
    folder: Path
    json: bool


def main(description: str | None) -> None:
    """Measure and print."""
    options = _parse(description)
    found = _repeats(options)
    figures = {name: median(getattr(each, name) for each in found) for name in MEANINGS}
    if options.json:
        told = {"tasks": options.tasks, "repeats": options.repeats, "session_s": options.session}
        runs = [{name: round(getattr(each, name), 3) for name in MEANINGS} for each in found]
        rounded = {name: round(value, 3) for name, value in figures.items()}
        print(msgspec.json.encode({**told, **rounded, "runs": runs}).decode())
    else:
        print(f"{options.tasks:,} tasks at work, session {options.session:g} s: median of {len(found)} (least, most)")
        for name, meaning in MEANINGS.items():
            values = [getattr(each, name) for each in found]
            print(f"  {name:18} {figures[name]:>9,.2f}  ({min(values):,.2f} – {max(values):,.2f})  {meaning}")


def _repeats(options: Options) -> Sequence[Takeover]:
    from tests.servers.kafka import kafka  # here: `--help` needs no broker

    name, server = kafka()
    found: list[Takeover] = []
    with server as broker:
        _note(f"broker: {name}, {broker.bootstrap}")
        for number in range(1, options.repeats + 1):
            with tempfile.TemporaryDirectory(dir=options.folder, prefix="takeover-") as fresh:
                folder = Path(fresh).absolute()
                found.append(asyncio.run(measure(broker.bootstrap, folder, options.tasks, options.session)))
            _note(f"run {number} of {options.repeats}: {found[-1].takeover_s:.2f} s")
    return found


def _parse(description: str | None) -> Options:
    parser = argparse.ArgumentParser(
        prog="bench/takeover.py", description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=_positive, default=10_000, metavar="N", help="tasks at work (default: 10000)")
    parser.add_argument("--repeats", type=_positive, default=5, metavar="R", help="to take medians of (default: 5)")
    parser.add_argument("--session", type=float, default=6.0, metavar="SECONDS", help="silence that means dead (6)")
    parser.add_argument("--folder", type=Path, default=Path(), help="for what a repeat leaves behind (default: here)")
    parser.add_argument("--json", action="store_true", help="one JSON object as the last line")
    return parser.parse_args(namespace=Options())


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError("at least 1")
    return number


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
