"""The program behind `bench/demo_kafka.py`: who is started, killed and asked, in which order."""

from __future__ import annotations

import argparse
import asyncio
import secrets
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

import msgspec

from bench.support.demo_log import RunLog
from bench.support.demo_roles import Place, RoleProcess, command
from dagbok import Dagbok
from dagbok.cli.outputs import export
from dagbok.events.log.kafka_settings import KafkaSettings

JOB: Final = Path(__file__).resolve().parents[2] / "examples" / "docs_audit.py"
WORKERS: Final = 3
KILL_AT: Final = 1 / 3
"""Of the files, when a worker is killed."""
GIVE_UP_S: Final = 300.0
BAR_CELLS: Final = 24


class Options(argparse.Namespace):
    """The command line."""

    input: Path
    pace: float
    session: float
    data: Path


class Failed(Exception):
    """Something is not as it should be; the message says what."""


def main(doc: str | None) -> int:
    """Play it; the exit status."""
    options = _parse(doc)
    scene = Scene()
    try:
        with tempfile.TemporaryDirectory(prefix="dagbok-demo-") as folder:
            _play(options, Path(folder), scene)
    except Failed as error:
        scene.tell("failed", str(error))
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


class Scene:
    """Tells what happens, with the seconds since the beginning."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()

    def tell(self, who: str, what: str) -> None:
        """One line."""
        print(f"{time.monotonic() - self._began_s:6.1f} s  {who:<10}  {what}", flush=True)


def _parse(doc: str | None) -> Options:
    parser = argparse.ArgumentParser(
        prog="bench/demo_kafka.py", description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--input", type=Path, default=Path(), metavar="FOLDER", help="what to audit (default: here)")
    parser.add_argument("--pace", type=float, default=6.0, metavar="SECONDS", help="spread the files over so long")
    parser.add_argument("--session", type=float, default=6.0, metavar="SECONDS", help="silence that means dead")
    parser.add_argument("--data", type=Path, default=Path("dagbok-data"), metavar="FOLDER", help="for the report")
    return parser.parse_args(namespace=Options())


def _play(options: Options, folder: Path, scene: Scene) -> None:
    from tests.servers.kafka import kafka
    from tests.servers.ladder import NoServer

    try:
        name, server = kafka()
    except NoServer as error:
        raise Failed(str(error)) from error
    kinds = {"environment": "the one that is named", "docker": "in a container", "java": "started here with Java"}
    scene.tell("broker", f"Apache Kafka, {kinds[name]} …")
    with server as broker:
        scene.tell("broker", f"answers at {broker.bootstrap}")
        kafka_settings = KafkaSettings(bootstrap_servers=broker.bootstrap, prefix=f"demo{secrets.token_hex(3)}.")
        asyncio.run(_on(Place(kafka_settings, folder, options.session), options, scene))


async def _on(place: Place, options: Options, scene: Scene) -> None:
    _done(await command(place, "topics", "create", "--partitions", "6"), "topics create")
    scene.tell("topics", "made, with 6 partitions")
    roles: list[RoleProcess] = []
    try:
        async with asyncio.timeout(GIVE_UP_S):
            scheduler = await RoleProcess.start("scheduler", place, "scheduler")
            roles.append(scheduler)
            for number in range(1, WORKERS + 1):
                roles.append(await RoleProcess.start(f"worker {number}", place, "worker", "--import", str(JOB)))
            for role in roles:
                await role.ready()
                scene.tell(role.name, f"process {role.pid} is ready")
            await _run(place, options, scene, roles[1:])
    except TimeoutError:
        raise Failed(f"not done within {GIVE_UP_S:.0f} s") from None
    finally:
        await asyncio.gather(*(role.end() for role in roles))


async def _run(place: Place, options: Options, scene: Scene, workers: list[RoleProcess]) -> None:
    told = ("submit", str(JOB), "--input", str(options.input.resolve()), "--pace-s", str(options.pace), "--json")
    run = msgspec.json.decode(_done(await command(place, *told), "submit"), type=dict[str, object])["run"]
    scene.tell("run", f"{run}: audit the documentation in {options.input.resolve()}")
    log = await RunLog.open(place.kafka, str(run), {worker.process: worker.name for worker in workers})
    try:
        await log.until(lambda: log.children > 0 or log.ended is not None)
        scene.tell("run", f"decomposed into {log.children} tasks, one for each file")
        victim = workers[1]
        killed = False
        shown = -1
        while log.ended is None:
            await log.step()
            part = log.verified * 10 // (log.children + 1)
            if part != shown and log.children:
                shown = part
                scene.tell("", _bar(log))
            if not killed and log.verified >= log.children * KILL_AT:
                killed = True
                await victim.kill()
                scene.tell(victim.name, f"killed (SIGKILL, process {victim.pid}): nobody was told, nothing handed back")
        _check(log, killed)
        scene.tell(log.ended, f"{log.verified} tasks verified, each exactly once: {_shares(log)}")
    finally:
        await log.close()
    await _report(place, options, scene, str(run))


async def _report(place: Place, options: Options, scene: Scene, run: str) -> None:
    async with Dagbok.connect(kafka=place.kafka, artifacts=place.artifacts, serve=False) as dagbok:
        result = await dagbok.result(run)
        files = await asyncio.to_thread(export, result, options.data, several=False)
    found = result.json()
    defects = ", ".join(f"{count} {kind}" for kind, count in sorted(found["findings"].items())) or "nothing is wrong"
    scene.tell("report", f"{found['files']} files, {found['links']} links: {defects}")
    for file in files:
        scene.tell("", str(file.path))


def _check(log: RunLog, killed: bool) -> None:
    """What was promised."""
    if log.ended != "succeeded":
        raise Failed(f"the run {log.ended}")
    if not killed:
        raise Failed("the run was over before anybody could be killed: give more files, or a longer --pace")
    if log.verified != log.children + 1 or log.twice:
        raise Failed(f"{log.verified} of {log.children + 1} tasks verified, {log.twice} of them twice")


def _bar(log: RunLog) -> str:
    full = log.verified * BAR_CELLS // (log.children + 1)
    return f"{'█' * full}{'░' * (BAR_CELLS - full)}  {log.verified:>4} of {log.children + 1} verified   {_shares(log)}"


def _shares(log: RunLog) -> str:
    return ", ".join(f"{name} did {count}" for name, count in sorted(log.by_worker.items()))


def _done(done: subprocess.CompletedProcess[str], what: str) -> str:
    if done.returncode:
        raise Failed(f"dagbok {what} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


