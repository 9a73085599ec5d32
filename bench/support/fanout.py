"""The program behind `bench/fanout.py`: repeats, medians, and the comparison with a peer."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import msgspec

from bench.raw_commit import raw_commit
from bench.support import meters
from bench.support.kafka_run import KafkaFigures
from bench.support.one_run import Figures
from bench.support.peers import PEERS, PeerFigures, run_peer

ROOT = Path(__file__).resolve().parent.parent.parent

Run = Figures | KafkaFigures

MOST_AGAINST = 3_000
"""Peers get so many tasks at most."""

MEANINGS = {
    "verified_tasks_per_s": "no-op tasks verified per second, to RunSucceeded in the log",
    "cpu_ms_per_task": "CPU of the main process, ms per task",
    "tables_cpu_ms_per_task": "CPU of the projector process, ms per task",
    "broker_cpu_ms_per_task": "CPU of the broker, ms per task",
    "peak_rss_mb": "most memory of the main process, MB",
    "bytes_per_task": "bytes kept per task: log and artifacts",
    "wall_s": "from start to RunSucceeded in the log, s",
    "tables_caught_up_s": "from start until the tables have it all, s",
    "caught_up_tasks_per_s": "tasks per second until then",
    "longest_block_ms": "longest time without a turn of the event loop, ms",
    "ready_s": "opening an empty folder, until the projector follows, s",
    "raw_commit_p50_ms": "one bare SQLite commit on this disk, p50, ms",
    "ratio": "times as many tasks per second as the peer",
}


class Options(argparse.Namespace):
    """The command line."""

    tasks: int
    repeat: int
    log: str
    against: str | None
    json: bool
    folder: Path


def main() -> None:
    """Measure and print."""
    options = _parse()
    raw_p50_ms = _raw_commit_p50_ms(options.folder)
    runs = _runs_on_kafka(options) if options.log == "kafka" else _runs_on_sqlite(options)
    figures = _medians(runs, options.tasks) | {"raw_commit_p50_ms": raw_p50_ms}
    peer = None
    if options.against is not None:
        _note(f"{options.against}: one run of {options.tasks:,} tasks; 1,000 take a minute or two")
        peer = _fresh_peer_run(options)
        figures["ratio"] = figures["verified_tasks_per_s"] / peer.tasks_per_s
    if options.json:
        print(msgspec.json.encode(_report(options, figures, runs, peer)).decode())
    else:
        _print_table(options, figures, runs, peer)


def _runs_on_sqlite(options: Options) -> Sequence[Run]:
    return [_told(_fresh_run(options.folder, options.tasks), number, options) for number in _numbers(options)]


def _runs_on_kafka(options: Options) -> Sequence[Run]:
    from tests.servers.kafka import kafka  # here: who measures SQLite needs none of it

    name, server = kafka()
    with server as broker:
        _note(f"broker: {name}, {broker.bootstrap}")
        pids = meters.children()
        return [_told(_kafka_run(options, broker.bootstrap, pids), number, options) for number in _numbers(options)]


def _numbers(options: Options) -> range:
    return range(1, options.repeat + 1)


def _told(run: Run, number: int, options: Options) -> Run:
    _note(f"run {number} of {options.repeat}: {run.verified_tasks_per_s:,.0f} tasks/s")
    return run


def _parse() -> Options:
    parser = argparse.ArgumentParser(
        prog="bench/fanout.py",
        description="root → N no-op tasks → integrate, each verified, on a fresh SQLite log with synchronous=FULL",
    )
    parser.add_argument("--tasks", type=_positive, default=1000, metavar="N", help="no-op tasks (default: 1000)")
    parser.add_argument("--repeat", type=_positive, default=5, metavar="R", help="runs to take medians of (default: 5)")
    parser.add_argument("--log", choices=("sqlite", "kafka"), default="sqlite", help="the log (default: sqlite)")
    parser.add_argument("--against", choices=PEERS, help="run the same workload on a peer too, once")
    parser.add_argument("--json", action="store_true", help="one JSON object as the last line")
    parser.add_argument("--folder", type=Path, default=Path(), help="where the disk is (default: here)")
    options = parser.parse_args(namespace=Options())
    if options.against is not None and options.tasks > MOST_AGAINST:
        parser.error(f"--against: the time of {options.against} grows with the square; at most {MOST_AGAINST:,} tasks")
    return options


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError("at least 1")
    return number


def _raw_commit_p50_ms(folder: Path) -> float:
    with tempfile.TemporaryDirectory(dir=folder, prefix="fanout-") as fresh:
        return raw_commit(Path(fresh) / "raw.db")["p50_ms"]


def _fresh_run(folder: Path, tasks: int) -> Figures:
    with tempfile.TemporaryDirectory(dir=folder, prefix="fanout-") as fresh:
        command = (sys.executable, "-m", "bench.support.one_run", str(Path(fresh).absolute()), str(tasks))
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return msgspec.json.decode(done.stdout, type=Figures)


def _kafka_run(options: Options, bootstrap: str, pids: Sequence[int]) -> KafkaFigures:
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="fanout-") as fresh:
        told = (bootstrap, str(Path(fresh).absolute()), str(options.tasks), *map(str, pids))
        command = (sys.executable, "-m", "bench.support.kafka_run", *told)
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return msgspec.json.decode(done.stdout, type=KafkaFigures)


def _fresh_peer_run(options: Options) -> PeerFigures:
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="fanout-") as fresh:
        return run_peer(str(options.against), Path(fresh).absolute(), options.tasks)


def _medians(runs: Sequence[Run], tasks: int) -> dict[str, float]:
    figures = {name: median(values) for name in runs[0].__struct_fields__ if (values := _values(runs, name))}
    if "tables_caught_up_s" in figures:
        figures["caught_up_tasks_per_s"] = tasks / figures["tables_caught_up_s"]
    return figures


def _values(runs: Sequence[Run], name: str) -> list[float]:
    """What the runs measured; empty for what cannot be measured here, and for what is not of a run."""
    return [value for run in runs if (value := getattr(run, name, None)) is not None]


def _report(options: Options, figures: dict[str, float], runs: Sequence[Run], peer: PeerFigures | None) -> object:
    return {
        "tasks": options.tasks,
        "repeat": options.repeat,
        **{name: _rounded(value) for name, value in figures.items()},
        "runs": [{name: _rounded(getattr(run, name)) for name in figures if _values([run], name)} for run in runs],
        **({} if peer is None else {"peer": {"name": options.against, **msgspec.structs.asdict(peer)}}),
    }


def _rounded(value: float) -> float:
    return float(f"{value:.4g}") if abs(value) < 1000 else round(value)


def _print_table(options: Options, figures: dict[str, float], runs: Sequence[Run], peer: PeerFigures | None) -> None:
    print(f"{options.tasks:,} tasks, median of {len(runs)} (least and most)")
    for name, meaning in MEANINGS.items():
        if name in figures:
            print(f"  {name:22} {_shown(figures[name]):>10}  {_spread(runs, name):21}  {meaning}")
    if peer is not None:
        rate, cpu_ms = _shown(peer.tasks_per_s), _shown(peer.cpu_ms_per_task)
        print(f"{options.against} {peer.version}: {rate} tasks/s, {cpu_ms} ms of CPU per task")


def _spread(runs: Sequence[Run], name: str) -> str:
    values = _values(runs, name)
    return f"({_shown(min(values))} – {_shown(max(values))})" if len(values) > 1 else ""


def _shown(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
