"""`dagbok doctor`: what is wrong with a deployment on Kafka."""

from __future__ import annotations

import asyncio
from typing import Annotated

import msgspec
from cyclopts import App, Group, Parameter

from dagbok.cli import say
from dagbok.cli.cluster import Cluster, Stores, with_kafka
from dagbok.cli.exits import Exit
from dagbok.cli.options import Output, settle
from dagbok.cli.quiet import quiet_logs
from dagbok.cli.text import columns

Pools = Annotated[
    list[str] | None, Parameter(name="--pool", negative="", help='A pool to look at; repeatable. Else "default".')
]


def add_to(app: App, group: Group) -> None:
    """Add the command."""
    app.command(doctor, group=group)


def doctor(
    *,
    pools: Pools = None,
    cluster: Cluster | None = None,
    stores: Stores | None = None,
    output: Output | None = None,
) -> int:
    """Look at a deployment on Kafka from outside: what is wrong with it?

    Whether brokers answer, topics are right, clocks agree, somebody plays
    each role, and how much waits for it. The exit status is 1 when something
    failed.

    For example:
      dagbok doctor --kafka broker:9092 --pool default --pool gpu
    """
    settings, how = settle(None, output)
    quiet_logs(settings)
    database = (stores or Stores()).over(settings).database
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
