"""The roles of production: names, options and help. What they do is in `role.py`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Group, Parameter

from dagbok.cli.cluster import Cluster, HealthOptions, Stores
from dagbok.cli.options import Imports, Output

Pools = Annotated[
    list[str] | None, Parameter(name="--pool", negative="", help='A pool that is served; repeatable. Else "default".')
]


def add_to(app: App, group: Group) -> None:
    """Add the commands."""
    for role in (scheduler, worker, verifier, projector):
        app.command(role, group=group)


def scheduler(
    *,
    cluster: Cluster | None = None,
    stores: Stores | None = None,
    health: HealthOptions | None = None,
    output: Output | None = None,
) -> int:
    """Decide for partitions of a log on Kafka until SIGTERM or Ctrl-C.

    Any number of them share the partitions; when one ends, others go on.

    For example:
      dagbok scheduler --kafka broker:9092 --artifacts s3://bucket/dagbok
    """
    from dagbok.cli.role import Options, serve_scheduler

    return serve_scheduler(Options(cluster, stores, health, output))


def worker(
    *,
    imports: Imports = None,
    pools: Pools = None,
    cluster: Cluster | None = None,
    stores: Stores | None = None,
    health: HealthOptions | None = None,
    output: Output | None = None,
) -> int:
    """Work in pools of a log on Kafka until SIGTERM or Ctrl-C.

    Serves the workers that the imported modules declare, and their verifiers,
    if they declare any. Makes the topics of its pools when they are missing.

    For example:
      dagbok worker --pool default --import my.workers --kafka broker:9092
    """
    from dagbok.cli.role import Options, serve_worker

    return serve_worker(imports or [], pools, Options(cluster, stores, health, output))


def verifier(
    *,
    imports: Imports = None,
    pools: Pools = None,
    cluster: Cluster | None = None,
    stores: Stores | None = None,
    health: HealthOptions | None = None,
    output: Output | None = None,
) -> int:
    """Verify in pools of a log on Kafka until SIGTERM or Ctrl-C.

    As "dagbok worker", but serves only the verifiers of the imported modules.

    For example:
      dagbok verifier --pool default --import my.verifiers --kafka broker:9092
    """
    from dagbok.cli.role import Options, serve_verifier

    return serve_verifier(imports or [], pools, Options(cluster, stores, health, output))


def projector(
    *,
    cluster: Cluster | None = None,
    stores: Stores | None = None,
    health: HealthOptions | None = None,
    output: Output | None = None,
) -> int:
    """Write what a log on Kafka says into PostgreSQL until SIGTERM or Ctrl-C.

    Any number of them share the partitions. Tables that are not there are made.

    For example:
      dagbok projector --kafka broker:9092 --database postgresql://db/dagbok
    """
    from dagbok.cli.role import Options, serve_projector

    return serve_projector(Options(cluster, stores, health, output))
