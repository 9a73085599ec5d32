"""`dagbok doctor`: what is wrong with a deployment on Kafka."""

from __future__ import annotations

import asyncio
from typing import Annotated

import msgspec
from cyclopts import App, Group, Parameter

from dagbok.agents.scheduler.losses import accept_loss
from dagbok.cli import say
from dagbok.cli.cluster import Cluster, Stores, with_kafka
from dagbok.cli.exits import Exit
from dagbok.cli.options import Output, settle
from dagbok.cli.quiet import quiet_logs
from dagbok.cli.text import columns
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.run.events import CommandsLost

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
    pools: Pools = None,
    cluster: Cluster | None = None,
    stores: Stores | None = None,
    loss: Loss = None,
    output: Output | None = None,
) -> int:
    """Look at a deployment on Kafka from outside: what is wrong with it?

    Whether brokers answer, topics are right, clocks agree, somebody plays
    each role, and how much waits for it. The exit status is 1 when something
    failed.

    For example:
      dagbok doctor --kafka broker:9092 --pool default --pool gpu
      dagbok doctor --accept-loss 3
    """
    settings, how = settle(None, output)
    quiet_logs(settings)
    database = (stores or Stores()).over(settings).database
    if loss is not None:
        return _accept((cluster or Cluster()).settings(), loss, f"operator:{settings.user}", database, how)
    examine = with_kafka("dagbok.agents.kafka.doctor").examine
    found = asyncio.run(examine((cluster or Cluster()).settings(), pools or ["default"], database))
    if how.json:
        say.out_json([msgspec.to_builtins(each) for each in found])
    else:
        for line in columns([["WHAT", "STATE", "FOUND"], *[[each.what, each.state, each.told] for each in found]]):
            say.out(line)
        for each in found:
            if each.state != "ok" and each.advice:
                say.note(f"{each.what}: {each.advice}")
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
