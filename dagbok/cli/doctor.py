"""`dagbok doctor`: what is wrong with a deployment on Kafka, or with a data folder."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import App, Group, Parameter

from dagbok.agents.doctor.finding import Finding
from dagbok.agents.hosting.folder import DataFolder
from dagbok.agents.scheduler.losses import accept_loss
from dagbok.cli import say
from dagbok.cli.advised import advised
from dagbok.cli.cluster import Cluster, Stores, with_kafka
from dagbok.cli.exits import Exit
from dagbok.cli.options import Output, settle
from dagbok.cli.quiet import quiet_logs
from dagbok.cli.text import clean, columns
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput, Refused
from dagbok.events.log.kafka_settings import PREFIX, KafkaSettings
from dagbok.events.run.events import CommandsLost
from dagbok.settings import Settings

WIDTH = 500
Folder = Annotated[
    Path | None,
    Parameter(help="Look at this data folder; without a broker, at $DAGBOK_DATA or ./dagbok-data if that is there."),
]
Pools = Annotated[
    list[str] | None, Parameter(name="--pool", negative="", help='A pool to look at; repeatable. Else "default".')
]

Loss = Annotated[
    int | None,
    Parameter(
        name="--accept-loss",
        help="Look at nothing: have commands of this partition that were removed undecided count as lost, for good.",
    ),
]


def add_to(app: App, group: Group) -> None:
    """Add the command."""
    app.command(doctor, group=group)


def doctor(
    *,
    data: Folder = None,
    pools: Pools = None,
    cluster: Cluster | None = None,
    stores: Stores | None = None,
    loss: Loss = None,
    output: Output | None = None,
) -> int:
    """Look at a deployment on Kafka, or at a data folder, from outside: what is wrong with it?

    Says for broker, topics, clock and each role how they stand, and what to
    do; then what stands still in the log: partitions that halt, attempts that
    nobody takes, deadlines that have passed, runs that are paused. Ends with 1
    when something is wrong. On Kafka it folds the whole log, from snapshots
    where the place of the artifacts is named. Where no broker is named and the
    data folder of other commands is there, it looks at that.

    For example:
      dagbok doctor --kafka broker:9092 --pool default --pool gpu
      dagbok doctor --data /var/lib/dagbok
      dagbok doctor --accept-loss 3
    """
    settings, how = settle(None, output)
    quiet_logs(settings)
    cluster = cluster or Cluster()
    if data is not None and (cluster.kafka or loss is not None):
        raise InvalidInput("--data is about a folder, the rest about Kafka", code=Code.USAGE, advice="give one of them")
    settings = (stores or Stores()).over(settings)
    if loss is not None:
        return _accept(cluster.settings(), loss, f"operator:{settings.user}", settings.database, how)
    if data is not None:
        return _tell(_of_folder(replace(settings, data=data.expanduser())), how)
    if cluster == Cluster() and stores is None and pools is None and _is_folder_meant(settings.data):
        if not how.json:
            say.note(f"no broker is named: this is the data folder {settings.data}")
        return _tell(_of_folder(settings), how)
    return _tell(_of_cluster(replace(settings, kafka=cluster.settings()), pools or ["default"]), how)


def _is_folder_meant(data: Path) -> bool:
    """Nobody has named a broker, and what other commands without options are about is there."""
    return not os.environ.get(f"{PREFIX}BOOTSTRAP_SERVERS", "").strip() and DataFolder(data).has_log()


def _of_folder(settings: Settings) -> Sequence[Finding]:
    from dagbok.agents.hosting.doctor import examine_folder

    folder = DataFolder(settings.data)
    if not folder.root.is_dir():
        raise Refused(Code.NOT_FOUND, f"the data folder {folder.root} does not exist", advice="check --data")
    return asyncio.run(examine_folder(folder, partial(advised, settings)))


def _of_cluster(settings: Settings, pools: Sequence[str]) -> Sequence[Finding]:
    examine = with_kafka("dagbok.agents.kafka.doctor.examine").examine
    found: Sequence[Finding] = asyncio.run(
        examine(settings.kafka, pools, settings.database, settings.artifacts, partial(advised, settings))
    )
    return found


def _tell(found: Sequence[Finding], how: Output) -> int:
    if how.json:
        say.out_json([msgspec.to_builtins(each) for each in found])
    else:
        rows = [[clean(each.what), each.state, clean(each.told, WIDTH)] for each in found]
        for line in columns([["WHAT", "STATE", "FOUND"], *rows]):
            say.out(line)
        for each in found:
            if each.state != "ok" and each.advice:
                say.note(f"{clean(each.what)}: {clean(each.advice, WIDTH)}")
    return Exit.FAILED if any(each.state == "failed" for each in found) else Exit.SUCCEEDED


def _accept(settings: KafkaSettings, partition: int, actor: str, database: str | None, how: Output) -> int:
    lost = asyncio.run(_accepted(settings, partition, actor, database))
    if how.json:
        say.out_json({"partition": partition, **msgspec.to_builtins(lost)})
    else:
        say.out(f"commands {lost.from_offset} to {lost.to_offset} of partition {partition} count as lost")
        say.note("its scheduler goes on within a minute; whoever sent one of them and was not answered sends it again")
    return Exit.SUCCEEDED


async def _accepted(settings: KafkaSettings, partition: int, actor: str, database: str | None) -> CommandsLost:
    log = await with_kafka("dagbok.events.log.kafka").KafkaLog.open(settings)
    try:
        if not 0 <= partition < log.partitions:
            raise InvalidInput(
                f"there is no partition {partition}: 0 to {log.partitions - 1} are there",
                code=Code.USAGE,
                advice="take the number from the line partition.halted of a scheduler",
            )
        known = await with_kafka("dagbok.agents.kafka.known").known_positions(settings, partition, database)
        return await accept_loss(log, partition, actor=actor, known=known)
    finally:
        await log.close()
