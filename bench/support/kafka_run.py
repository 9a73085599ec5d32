"""One fan-out on Kafka, measured in this process.

`python -m bench.support.kafka_run BOOTSTRAP FOLDER TASKS PID…` prints its figures as JSON. `PID…`: the processes of the
broker, if they run here.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import structlog

from bench.support import meters, workload
from bench.support.loop_watch import LoopWatch
from dagbok.agents.hosting.deciding import Deciding
from dagbok.agents.kafka.process import KafkaProcess
from dagbok.agents.workers.definitions import Registry
from dagbok.events.body import decode_body
from dagbok.events.commit import split_value
from dagbok.events.envelope import Sender, run_command
from dagbok.events.ids import partition_of, run_id, run_stream
from dagbok.events.log import kafka_topics as topics
from dagbok.events.log.clock import system_ms
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.run.events import RunSucceeded
from dagbok.events.run.values import Pinned
from dagbok.projections.task_graph.state import RunState
from dagbok.starting import start_command

SENDER = Sender("bench", "bench", "user:bench")
GIVE_UP_S = 600.0


class KafkaFigures(msgspec.Struct, frozen=True):
    """See `docs/performance.md`. Times begin when the run is started, the process having its partitions."""

    wall_s: float
    verified_tasks_per_s: float
    cpu_ms_per_task: float
    broker_cpu_ms_per_task: float | None
    peak_rss_mb: float
    longest_block_ms: float
    ready_s: float


def measure(bootstrap: str, folder: Path, tasks: int, brokers: Sequence[int]) -> KafkaFigures:
    """Run it with topics of its own. Raises `RuntimeError` when it does not end as it should."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    settings = KafkaSettings(bootstrap_servers=bootstrap, prefix=f"bench{secrets.token_hex(4)}.")
    return asyncio.run(_measure(settings, folder, tasks, brokers))


async def _measure(settings: KafkaSettings, folder: Path, tasks: int, brokers: Sequence[int]) -> KafkaFigures:
    await topics.create(settings, topics.declared(settings.prefix))
    opened_s = time.perf_counter()
    registry = Registry()
    for definition in workload.definitions():
        registry.add(definition)
    process = await KafkaProcess.open(settings, str(folder), registry)
    try:
        process.schedule()
        process.work(["default"])
        await _fan_out(process, registry, "warm-up", 1)  # then all groups are joined
        start_broker_s = meters.cpu_s(brokers)
        start_s, start_cpu_s = time.perf_counter(), time.process_time()
        with LoopWatch() as watch:
            await _fan_out(process, registry, "fan-out", tasks)
        wall_s, cpu_s = time.perf_counter() - start_s, time.process_time() - start_cpu_s
        broker_s = meters.cpu_s(brokers) - start_broker_s
        await _check_log(process, "fan-out")
    finally:
        await process.close()
    return KafkaFigures(
        wall_s=wall_s,
        verified_tasks_per_s=tasks / wall_s,
        cpu_ms_per_task=cpu_s / tasks * 1000,
        broker_cpu_ms_per_task=broker_s / tasks * 1000 if brokers else None,
        peak_rss_mb=meters.peak_rss_mb(),
        longest_block_ms=watch.longest_s * 1000,
        ready_s=start_s - opened_s,
    )


async def _fan_out(process: KafkaProcess, registry: Registry, key: str, tasks: int) -> None:
    """Until it has succeeded, by the confirmed state."""
    assert process.scheduler is not None
    run = run_id(SENDER.tenant, SENDER.project, key)
    command = start_command(
        run,
        [workload.root_task(tasks)],
        Pinned(registry.pins()),
        pool="default",
        user="bench",
        limits=workload.limits(tasks),
    )
    async with asyncio.timeout(GIVE_UP_S):
        deciding = await process.scheduler.owned(_partition(process, key))
        answer = await process.ask(run_command(SENDER, run_stream(run), command, id=key, now_ms=system_ms()))
        if not answer.accepted:
            raise RuntimeError(answer.reason)
        _check(await _over(deciding, run_stream(run)), tasks)


async def _over(deciding: Deciding, stream: str) -> RunState:
    over: asyncio.Future[RunState] = asyncio.get_running_loop().create_future()

    def look(*_: object) -> None:
        run = deciding.owner.state.run_of(stream)
        if run is not None and run.status != "running" and not over.done():
            over.set_result(run)

    unwatch = deciding.outputs.watch(look)
    look()
    try:
        return await over
    finally:
        unwatch()


def _partition(process: KafkaProcess, key: str) -> int:
    return partition_of(run_stream(run_id(SENDER.tenant, SENDER.project, key)), process.log.partitions)


def _check(run: RunState, tasks: int) -> None:
    verified = run.counts.get("verified", 0)
    if run.status != "succeeded" or verified != workload.verified_in_all(tasks):
        raise RuntimeError(f"the run {run.status}: {verified} verified")


async def _check_log(process: KafkaProcess, key: str) -> None:
    """Make sure that the log has the end, as another process would read it."""
    partition = _partition(process, key)
    start = (await process.log.bounds("events", partition)).end - 1
    records = await process.log.read("events", partition, start, 1)
    parts = split_value(records[-1].value)
    events = decode_body(parts[1], parts[0].codec, parts[0].raw_size) if parts else []
    if not events or not isinstance(events[-1], RunSucceeded):
        raise RuntimeError("the last commit of the log does not say that the run succeeded")


if __name__ == "__main__":
    bootstrap, folder, tasks, *brokers = sys.argv[1:]
    figures = measure(bootstrap, Path(folder), int(tasks), [int(pid) for pid in brokers])
    print(msgspec.json.encode(figures).decode())
